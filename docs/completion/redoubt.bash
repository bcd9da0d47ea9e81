# Completion for bash. Tools and options come from the program's help.

_redoubt_tools() {
    redoubt help 2>/dev/null | sed -n 's/^  \([a-z][a-z0-9-]*\)  .*/\1/p'
}

_redoubt_options() {
    redoubt "$1" --help 2>/dev/null | grep '^  ' | grep -o -e '--[a-z][a-z0-9-]*'
}

_redoubt() {
    local current=${COMP_WORDS[COMP_CWORD]} tool=${COMP_WORDS[0]##*/} words=
    COMPREPLY=()
    if [ "$tool" = redoubt ]; then
        tool=${COMP_WORDS[1]}
        if [ "$COMP_CWORD" -eq 1 ] || [ "$tool" = help ]; then
            words="$(_redoubt_tools) --help --version"
        fi
    fi
    if [ -z "$words" ]; then
        [[ $current == -* ]] || return # arguments other than options are files
        words=$(_redoubt_options "$tool")
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -o default -F _redoubt redoubt check-rdb check-aof
