package session

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Places returns the paths where urdmad's control socket may be, in the order in which urdma-exec(1) tries
// them: $URDMA_SOCKET alone if it is set; otherwise the user's runtime directory, even if the variable is
// missing, the system's, and the user's in /tmp. Package config has the same search, but importing it would
// link the parser of urdma.json into every program.
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

// ownDirectory checks a directory in /tmp, where anybody may create one with our name: it must belong to the
// user or root.
func ownDirectory(path string) bool {
	fi, err := os.Lstat(path)
	if err != nil || !fi.IsDir() || fi.Mode().Perm()&0o022 != 0 {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && fi.Mode()&fs.ModeSymlink == 0 && (int(st.Uid) == os.Getuid() || st.Uid == 0)
}
