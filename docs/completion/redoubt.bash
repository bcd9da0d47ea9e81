# Completion for bash. Tools, options and their values come from the program.

_redoubt_tools() {
    redoubt help 2>/dev/null | sed -n 's/^  \([a-z][a-z0-9-]*\)  .*/\1/p'
}

# The values of an option of a tool, if they are known.
_redoubt_values() {
    redoubt "$1" --list-options 2>/dev/null | sed -n "s/^$2 //p" | tr '|' ' '
}

_redoubt() {
    local current=${COMP_WORDS[COMP_CWORD]} tool=${COMP_WORDS[0]##*/} words= option=
    COMPREPLY=()
    if [ "$tool" = redoubt ]; then
        tool=${COMP_WORDS[1]}
        if [ "$COMP_CWORD" -eq 1 ] || [ "$tool" = help ]; then
            words="$(_redoubt_tools) --help --version"
        fi
    fi
    if [ -z "$words" ]; then
        # readline divides words at "=": --to=rdb is three of them
        if [ "$current" = = ]; then
            option=${COMP_WORDS[COMP_CWORD - 1]} current=
        elif [ "${COMP_WORDS[COMP_CWORD - 1]}" = = ]; then
            option=${COMP_WORDS[COMP_CWORD - 2]}
        else
            option=${COMP_WORDS[COMP_CWORD - 1]}
        fi
        [[ $option == --* ]] && words=$(_redoubt_values "$tool" "$option")
    fi
    if [ -z "$words" ]; then
        [[ $current == -* ]] || return # arguments other than options are files
        words=$(redoubt "$tool" --list-options 2>/dev/null | sed 's/ .*//')
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -o default -F _redoubt redoubt check-rdb check-aof
