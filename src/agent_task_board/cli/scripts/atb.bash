# Completion of atb for bash: source <(atb completion bash)

_atb() {
  local kind= line
  COMPREPLY=()
  while IFS= read -r line; do
    if [ -z "$kind" ]; then
      kind=$line
    else
      COMPREPLY+=("$line")
    fi
  done <<<"$(command atb __complete bash "$COMP_TYPE" "$COMP_WORDBREAKS" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null </dev/null)"
  case $kind in
    files) compopt -o default ;;
    directories) compopt -o dirnames ;;
  esac 2>/dev/null
}

complete -o nosort -F _atb atb 2>/dev/null || complete -F _atb atb
