#compdef atb
# Completion of atb for zsh, after compinit: source <(atb completion zsh)

_atb() {
  emulate -L zsh
  local -a lines values shown
  local line kind has_text=
  lines=("${(@f)$(command atb __complete zsh "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)}")
  kind=$lines[1]
  case $kind in
    words)
      for line in "${(@)lines[2,-1]}"; do
        [[ -n $line ]] || continue
        values+=("${line%%$'\t'*}")
        if [[ $line == *$'\t'* ]]; then
          has_text=1
          shown+=("${line%%$'\t'*}  -- ${line#*$'\t'}")
        else
          shown+=("$line")
        fi
      done
      if [[ -n $has_text ]]; then
        compadd -V atb -l -d shown -a values
      else
        compadd -V atb -a values
      fi
      ;;
    files | directories)
      [[ $PREFIX == --*=* ]] && compset -P 1 '*='
      if [[ $kind == files ]]; then _files; else _files -/; fi
      ;;
  esac
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _atb "$@"
elif (( $+functions[compdef] )); then
  compdef _atb atb
fi
