package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const libraryName = "liburdma.so"

// findLibrary gives the absolute path of the library to preload.
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

// libraryPlaces lists where the library may be for a urdma in a build tree,
// a prefix, or a distribution's multi-architecture tree.
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

// checkSeparators refuses a path that LD_PRELOAD can't hold: it splits at
// spaces and colons and knows no escape (ld.so(8)).
func checkSeparators(lib string) error {
	if strings.ContainsAny(lib, " :") {
		return fmt.Errorf("%s: LD_PRELOAD cannot hold a path with a space or a colon; copy the library elsewhere and name it by --lib", lib)
	}
	return nil
}
