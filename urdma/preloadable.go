package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxInterpreters is the number of "#!" lines that the kernel follows (execve(2)).
const maxInterpreters = 4

// checkPreloadable refuses a program into which ld.so would not load the library: it would run without devices, and
// its user would not know why.
func checkPreloadable(program, lib string) error {
	binary, err := followScripts(program)
	if err != nil {
		return err
	}
	via := ""
	if binary != program {
		via = fmt.Sprintf(" (the interpreter of %s)", program)
	}
	if why := privileged(binary); why != "" {
		return fmt.Errorf("%s%s %s: ld.so ignores preloaded libraries there, so the program would not reach urdmad; "+
			"run it as a user for whom it gains nothing, or use a copy without that mark", binary, via, why)
	}
	class, err := dynamicClass(binary)
	switch {
	case errors.Is(err, errNotELF):
		return nil // execve reports the error
	case errors.Is(err, errStatic):
		return fmt.Errorf("%s%s is statically linked: no library can be preloaded into it, so it would not reach urdmad; "+
			"use a dynamically linked build (a Go program uses package verbs)", binary, via)
	case errors.Is(err, errMusl):
		return fmt.Errorf("%s%s is linked with musl, which cannot load a library that is built with glibc, so it would "+
			"not reach urdmad; "+
			"use a build for glibc (a container image of Debian instead of Alpine)", binary, via)
	case err != nil:
		return fmt.Errorf("%s%s: %w", binary, via, err)
	}
	libClass, err := dynamicClass(lib)
	if err != nil && !errors.Is(err, errStatic) { // a shared object has no loader
		return fmt.Errorf("%s is no shared library that can be preloaded: %w", lib, err)
	}
	if class != libClass {
		return fmt.Errorf("%s%s is for %s and %s for %s: they cannot run in one process", binary, via, class, lib, libClass)
	}
	return nil
}

// followScripts finds the binary that interprets a script.
func followScripts(program string) (string, error) {
	named := program
	for range maxInterpreters + 1 {
		line, err := firstLine(program)
		if err != nil {
			return "", fmt.Errorf("%s cannot run: %w", named, err)
		}
		script, ok := strings.CutPrefix(line, "#!")
		if !ok {
			return program, nil
		}
		fields := strings.Fields(script)
		if len(fields) == 0 {
			return program, nil
		}
		program = fields[0]
		if isEnv(fields) {
			if found, err := exec.LookPath(fields[1]); err == nil {
				program = found
			}
		}
	}
	return "", fmt.Errorf("%s: more than %d interpreters, one named by the other's #! line", named, maxInterpreters)
}

// isEnv recognises "#!/usr/bin/env python3".
func isEnv(fields []string) bool {
	return strings.HasSuffix(fields[0], "/env") && len(fields) > 1 &&
		!strings.HasPrefix(fields[1], "-") && !strings.Contains(fields[1], "=")
}

// firstLine reads as many bytes as the kernel does for a "#!" (BINPRM_BUF_SIZE).
func firstLine(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrPermission) {
		return "", nil // executable but not readable: a binary
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	buf := make([]byte, 256)
	n, err := io.ReadFull(f, buf)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	line, _, _ := bytes.Cut(buf[:n], []byte{'\n'})
	return string(line), nil
}

// privileged says why starting the file gives it more privileges than the caller has, which puts ld.so into secure
// mode (AT_SECURE, getauxval(3)); "" if it does not.
func privileged(path string) string {
	if noNew, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && noNew == 1 {
		return "" // execve then adds no privileges
	}
	fi, err := os.Stat(path)
	if err != nil {
		return ""
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	const groupRun = 0o010 // setgid without it marks mandatory locking
	switch {
	case fi.Mode()&os.ModeSetuid != 0 && int(st.Uid) != os.Getuid():
		return fmt.Sprintf("is setuid to uid %d", st.Uid)
	case fi.Mode()&os.ModeSetgid != 0 && fi.Mode().Perm()&groupRun != 0 && int(st.Gid) != os.Getgid():
		return fmt.Sprintf("is setgid to gid %d", st.Gid)
	}
	if n, err := unix.Getxattr(path, "security.capability", nil); err == nil && n > 0 && os.Getuid() != 0 {
		return "has file capabilities (capabilities(7))"
	}
	return ""
}

var (
	errNotELF = errors.New("not an ELF file")
	errStatic = errors.New("statically linked")
	errMusl   = errors.New("linked with musl")
)

// dynamicClass returns the machine type of a file. errStatic or errMusl come with it if the file names no dynamic
// loader, or musl's.
func dynamicClass(path string) (string, error) {
	f, err := elf.Open(path)
	var format *elf.FormatError
	switch {
	case errors.As(err, &format), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "", errNotELF
	case errors.Is(err, os.ErrPermission):
		return "", errNotELF // not readable; let execve try
	case err != nil:
		return "", err
	}
	defer f.Close()
	class := fmt.Sprintf("%s %s", strings.TrimPrefix(f.Machine.String(), "EM_"),
		strings.TrimPrefix(f.Class.String(), "ELFCLASS"))
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			loader, _ := io.ReadAll(p.Open()) // execve reports a loader that can't be read
			if bytes.Contains(loader, []byte("/ld-musl-")) {
				return class, errMusl
			}
			return class, nil
		}
	}
	return class, errStatic
}
