package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
)

// features are attached to the core and to control, in which these words name them.
var features = []struct {
	name  string
	words *regexp.Regexp
}{
	{
		"watch: trace, flight recorder, explain, warn",
		regexp.MustCompile(`(Client|\bc)\.Watch(All)?\b|\bWatchAll +bool|\bWatch +Watch\b|\bWatch interface\b`),
	},
	{"tap: captures", regexp.MustCompile(`\bTap\b|\bRetired\b|Stats\.Last\b|\bLast +Drop\b`)},
	{"injector: urdma inject, strict", regexp.MustCompile(`\bInterceptor\b`)},
	{"impair: loss and delay of a port", regexp.MustCompile(`\bSetQueue\b`)},
	{"snapshot, metrics: states of connections", regexp.MustCompile(`\bInspect\(`)},
	{"kernelif: the kernel's network interface", regexp.MustCompile(`\b(DropKernel|SetKernel|Kernel[A-Z]\w*)\b`)},
	{"admin, umad, fabric, responder", regexp.MustCompile(`(?i)\b(admin\.|umad\b|fabric\.|responder\.)`)},
}

// costs prints, for each feature, the number of lines in core and control that name it.
func costs(w io.Writer, root string) error {
	counts := make([]int, len(features))
	err := fs.WalkDir(os.DirFS(root), "urdmad", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !strings.HasPrefix(file, "urdmad/core/") && !strings.HasPrefix(file, "urdmad/control/") || isKit(path.Dir(file)) ||
			path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path.Join(root, file))
		if err != nil {
			return err
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "//") {
				continue
			}
			for i := range features {
				if features[i].words.MatchString(line) {
					counts[i]++
				}
			}
		}
		return nil
	})
	for i := range features {
		fmt.Fprintf(w, "%3d  %s\n", counts[i], features[i].name)
	}
	return err
}
