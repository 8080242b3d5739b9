#!/usr/bin/env bash
# A worker: claims one task after another until none is ready, and runs a command for each.
#
#   ATB_AGENT=ada examples/worker.sh ./do-the-work --fast
#
# The command reads the claim as JSON from standard input and prints its result as JSON. Exit code 0 completes the task.
# Any other exit code, or a result that is not JSON, fails it. The command is stopped when the lease is lost. BEAT is the
# time between heartbeats in seconds; use a third of the lease.
set -u
: "${ATB_AGENT:?name the agent}" "${1:?name the command that does the work}"
export ATB_FORMAT=json # overrides the caller's format
beat=${BEAT:-300}
scratch=$(mktemp -d) && trap 'rm -r "$scratch"' EXIT

pick() { # print the value under these keys of the JSON on standard input
  python3 -c 'import functools, json, sys; print(functools.reduce(dict.get, sys.argv[1:], json.load(sys.stdin)))' "$@"
}

ask() { # repeat the call while the board is busy
  local code
  while atb "$@" >"$scratch/answer"; code=$?; [ "$code" -eq 7 ]; do sleep 1; done
  return "$code"
}

renew() { # send heartbeats until terminated; stop the work and leave a mark once the lease is lost
  trap 'kill "$nap" 2>/dev/null; exit' TERM
  while sleep "$beat" & nap=$!; wait "$nap"; do
    atb heartbeat "$1" >/dev/null 2>&1
    if [ $? -eq 5 ]; then touch "$scratch/lost"; kill "$2"; exit; fi
  done
}

while true; do
  ask claim --fail-empty
  case $? in
    0) cp "$scratch/answer" "$scratch/claim" ;;
    9) exit 0 ;; # nothing is ready
    *) cat "$scratch/answer" >&2; exit 1 ;;
  esac
  id=$(pick data task id <"$scratch/claim")
  ATB_TOKEN=$(pick data lease token <"$scratch/claim")
  export ATB_TOKEN
  if [ -z "$id" ] || [ -z "$ATB_TOKEN" ]; then echo "cannot read the answer to the claim" >&2; exit 1; fi

  "$@" <"$scratch/claim" >"$scratch/result" 2>"$scratch/errors" & work=$!
  renew "$id" "$work" & renewing=$!
  wait "$work"; code=$?
  kill "$renewing" 2>/dev/null; wait "$renewing" 2>/dev/null

  if [ -e "$scratch/lost" ]; then
    rm "$scratch/lost"
    echo "$id: the lease is lost; the work was stopped" >&2
    continue
  fi
  [ -s "$scratch/result" ] || echo null >"$scratch/result"
  if [ "$code" -ne 0 ]; then
    output=$(tail -n 5 "$scratch/errors" | LC_ALL=C tr -cd '\11\12\40-\176')
    why="exit code $code: ${output:-no error output}"
  elif ask complete "$id" --result @"$scratch/result"; then
    continue
  else
    why="the result was refused: $(pick error message <"$scratch/answer")"
  fi
  ask fail "$id" --error "$why" || cat "$scratch/answer" >&2
done
