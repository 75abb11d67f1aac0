# shellcheck shell=bash
# What the scripts share: messages, exit codes, the MPI environment. Sourced, never run.

readonly EXIT_NOT_AVAILABLE=5  # the program's own codes, see base/error.hpp
readonly EXIT_USAGE=6
readonly EXIT_BELOW=8
readonly EXIT_INCONCLUSIVE=9

readonly CALLED_FROM=$PWD
[[ $0 == /* ]] && CALLED=$0 || CALLED=$PWD/$0
readonly CALLED
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly REPOSITORY=$PWD

say() { printf '%s\n' "$*"; }

# quoted WORD…: as any sh reads them. Bash's own ${…@Q} writes $'…' for a line's end, which dash does not know.
quoted() {
  local word
  for word; do printf "'%s' " "${word//\'/\'\\\'\'}"; done
}

# fail CODE SENTENCE…: the sentence says what is wrong and what to do.
fail() {
  local code=$1
  shift
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit "$code"
}

# The comment at the top of a script is its --help.
print_help() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$CALLED"; }

# build_folder PRESET: where CMakePresets.json puts it.
build_folder() {
  case $1 in
    release) say "$REPOSITORY/build" ;;
    *) say "$REPOSITORY/build-$1" ;;
  esac
}

# How many compilers may run at once: one per core, and about 2 GB of memory for each.
parallel_jobs() {
  local cores kilobytes jobs limit=/sys/fs/cgroup/memory.max
  cores=$(nproc)
  kilobytes=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
  if [[ -r $limit && $(<"$limit") != max ]] && (($(<"$limit") / 1024 < kilobytes)); then
    kilobytes=$(($(<"$limit") / 1024))
  fi
  jobs=$((kilobytes / 2000000))
  ((jobs < cores)) || jobs=$cores
  ((jobs > 0)) || jobs=1
  say "$jobs"
}

# Lets mpirun start as root and with more ranks than cores; MPICH needs no such leave.
allow_mpi() {
  set -a
  # shellcheck source=scripts/mpi.env
  . "$REPOSITORY/scripts/mpi.env"
  set +a
}
