#!/bin/sh
# The commands of a pretended site for its datasets: data_tool.sh ACTION CONTROL ARGUMENTS.
# CONTROL is a folder; its file ACTION says how the action goes wrong, CONTROL/log what was called.
action=$1 control=$2
shift 2
echo "$action $*" >> "$control/log"
mode=$(cat "$control/$action" 2> /dev/null)

# Say that this point is reached, and wait to be let on.
gate() {
    echo $$ > "$control/at-$1"
    while [ ! -e "$control/go" ]; do sleep 0.02; done
}

case $mode in
    gate*) gate "$action${mode#gate}" ;;
    fail) echo "first line" >&2; echo "the $action is broken" >&2; exit 1 ;;
    hang) trap '' TERM; echo $$ > "$control/at-$action"; while :; do sleep 0.05; done ;;
    rubbish) head -c 3000000 /dev/zero | tr '\0' x; head -c 3000000 /dev/zero >&2; printf '\n\033[31mred\n' >&2; exit 3 ;;
    megabytes) head -c 3000000 /dev/zero | tr '\0' x; exit 0 ;;
    background) sleep 300 & echo $! > "$control/at-$action" ;;
esac

case $action in
    copy)
        case $mode in
            half) head -c "$(($(wc -c < "$1") / 2))" "$1" > "$2"; gate copy-half; cp "$1" "$2" ;;
            dies*) head -c "${mode#dies}" "$1" > "$2"; echo "connection reset" >&2; exit 12 ;;
            full) head -c 3 "$1" > "$2"; echo "write failed: No space left on device" >&2; exit 11 ;;
            wrong) cp "$1" "$2"; printf x >> "$2" ;;
            *) cp "$1" "$2" ;;
        esac ;;
    check)
        case $mode in
            nothing) ;;
            *) sha256sum "$1/$2" ;;
        esac ;;
    size) wc -c < "$1/$2" ;;
    remove) rm -rf "${1:?}/$2" ;;
esac
