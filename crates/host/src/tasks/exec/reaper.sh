# Waits until a Midflight executor has died, and then kills the commands that it ran. docs/internals/commands.md
# stdin: a pipe that ends with the executor. stdout: the table, a line "MARK GROUP" for each command; GROUP may be missing.
trap '' HUP INT QUIT TERM
read -r _

marks=
while read -r mark group; do
    case $mark in
    ????????????????-????????????????) marks="$marks
MIDFLIGHT_RUN=$mark" ;;
    *) continue ;;
    esac
    case $group in
    '' | 1 | *[!0-9]*) ;;
    *) kill -s KILL -- "-$group" ;;
    esac
done <&1
[ -n "$marks" ] || exit 0

# What has left its group still has the mark in its environment. Until nothing is found: it may start further processes.
round=0
while [ $round -lt 20 ]; do
    files=$(printf '%s\n' "${marks#?}" | grep -lF -f - /proc/[0-9]*/environ)
    [ -n "$files" ] || exit 0
    for file in $files; do
        process=${file#/proc/}
        kill -s KILL "${process%/environ}"
    done
    round=$((round + 1))
    [ $round -lt 10 ] || sleep 1 # a process that the kernel cannot end yet
done
