# Completion of atb for fish: atb completion fish | source

function __atb_complete
    command -q atb; or return
    set -l current (commandline -ct)
    set -l lines (command atb __complete fish (commandline -opc) "$current" 2>/dev/null </dev/null)
    switch "$lines[1]"
        case words
            set -e lines[1]
            test (count $lines) -gt 0; and printf '%s\n' $lines
        case files directories
            set -l option (string match -r -- '^--[a-z0-9-]+=' "$current")
            set -l path (string replace -r -- '^--[a-z0-9-]+=' '' "$current")
            if test "$lines[1]" = files
                __fish_complete_path "$path" | string replace -r -- '^' "$option"
            else
                __fish_complete_directories "$path" | string replace -r -- '^' "$option"
            end
    end
end

complete -c atb -k -f -a '(__atb_complete)'
