package main

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const libraryName = "liburdma.so"

// findLibrary returns the absolute path of the library to preload.
func findLibrary(given string) (string, error) {
	if given != "" {
		lib, err := filepath.Abs(given)
		if err != nil {
			return "", fmt.Errorf("--lib %s: %w", given, err)
		}
		if fi, err := os.Stat(lib); err != nil || fi.IsDir() {
			return "", fmt.Errorf("--lib %s: no such file", given)
		}
		return lib, checkSeparators(lib)
	}
	self, err := os.Executable() // on Linux with symbolic links resolved
	if err != nil {
		return "", fmt.Errorf("cannot find urdma's own file: %w", err)
	}
	places := libraryPlaces(self)
	for _, lib := range places {
		if fi, err := os.Stat(lib); err == nil && fi.Mode().IsRegular() {
			return lib, checkSeparators(lib)
		}
	}
	return "", fmt.Errorf("%s not found; looked for %s; name it by --lib", libraryName, strings.Join(places, ", "))
}

// libraryPlaces lists where the library may be, for a urdma in a build tree, under a prefix, or in a distribution's
// multi-architecture tree.
func libraryPlaces(self string) []string {
	dir := filepath.Dir(self)
	places := []string{
		filepath.Join(dir, libraryName),
		filepath.Join(dir, "..", "lib", libraryName),
		filepath.Join(dir, "..", "lib", "urdma", libraryName),
	}
	multiarch, _ := filepath.Glob(filepath.Join(dir, "..", "lib", "*-linux-gnu", libraryName))
	places = append(places, multiarch...)
	if libDir != "" {
		places = append(places, filepath.Join(libDir, libraryName))
	}
	return places
}

// checkSeparators refuses a path that LD_PRELOAD can't contain: ld.so(8) splits at spaces and colons, without an
// escape.
func checkSeparators(lib string) error {
	if strings.ContainsAny(lib, " :") {
		return fmt.Errorf("%s: LD_PRELOAD cannot hold a path with a space or a colon; copy the library elsewhere and name "+
			"it by --lib", lib)
	}
	return nil
}

// namesDirectory is the directory next to the library with the names of libibverbs and librdmacm. It is "" if there
// is none, or if our library must not replace this machine's.
func namesDirectory(lib string) string {
	dir := filepath.Join(filepath.Dir(lib), "liburdma.d")
	if _, err := os.Stat(filepath.Join(dir, "libibverbs.so.1")); err != nil || strings.Contains(dir, ";") {
		return ""
	}
	ours := versions(lib)
	for _, place := range []string{"/lib/*-linux-gnu", "/usr/lib/*-linux-gnu", "/lib64", "/usr/lib64", "/lib",
		"/usr/lib"} {
		for _, name := range []string{"libibverbs.so.1", "librdmacm.so.1"} {
			installed, _ := filepath.Glob(filepath.Join(place, name))
			if slices.ContainsFunc(installed, func(path string) bool { return !holds(ours, versions(path)) }) {
				return ""
			}
		}
	}
	return dir
}

func holds(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// versions lists the symbol versions of a library. A program linked with a library that has one more would not
// start with ours.
func versions(path string) (names []string) {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	defined, _ := f.DynamicVersions()
	for _, v := range defined {
		if v.Flags&elf.VER_FLG_BASE == 0 { // that one is the library's own name
			names = append(names, v.Name)
		}
	}
	return names
}
