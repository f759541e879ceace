package session

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Places is where urdmad's control socket may be, best first, as
// urdma-exec(1) looks for it: $URDMA_SOCKET alone where it is set, otherwise
// the user's runtime directory, also where the variable is missing, the system's,
// and the user's in /tmp. It is a
// search of its own, not config's, so that programs don't carry along what
// reads urdma.json.
func Places() []string {
	if s := os.Getenv("URDMA_SOCKET"); s != "" {
		return []string{s}
	}
	var places []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		places = append(places, filepath.Join(dir, "urdma", "urdmad.sock"))
	}
	login := filepath.Join("/run/user", strconv.Itoa(os.Getuid()), "urdma", "urdmad.sock")
	if !slices.Contains(places, login) {
		places = append(places, login)
	}
	places = append(places, "/run/urdma/urdmad.sock")
	private := "/tmp/urdma-" + strconv.Itoa(os.Getuid())
	if ownDirectory(private) {
		places = append(places, filepath.Join(private, "urdmad.sock"))
	}
	return places
}

// ownDirectory: anybody may make a directory in /tmp under a name that looks
// like ours, so only the user's own or root's is believed.
func ownDirectory(path string) bool {
	fi, err := os.Lstat(path)
	if err != nil || !fi.IsDir() || fi.Mode().Perm()&0o022 != 0 {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && fi.Mode()&fs.ModeSymlink == 0 && (int(st.Uid) == os.Getuid() || st.Uid == 0)
}
