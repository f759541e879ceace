package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// newBench runs urdma-bench, a separate program so that urdma links neither plots nor test code.
func newBench() *cobra.Command {
	return &cobra.Command{
		Use:   "bench [flags]",
		Short: "measure urdma on this machine, compared with kernel sockets",
		Long: "Run perftest's programs over urdmads of their own and, in the same rounds, the installed programs to " +
			"compare with: iperf3, sockperf, dpdk-testpmd. urdma-bench(1) and urdma bench --help list the flags.",
		Example:            "  urdma bench\n  urdma bench --rounds 3 --only 'loopback|copying'",
		DisableFlagParsing: true, // the flags belong to urdma-bench
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := findBench()
			if err != nil {
				return withStatus(exitNotFound, err)
			}
			if library, err := findLibrary(""); err == nil { // otherwise --build has to name the directory
				args = append([]string{"--lib", library}, args...)
			}
			err = syscall.Exec(path, append([]string{path}, args...), os.Environ())
			return withStatus(exitCannotRun, fmt.Errorf("cannot run %s: %w", path, err))
		},
	}
}

// findBench looks for urdma-bench next to urdma, then in PATH.
func findBench() (string, error) {
	const name = "urdma-bench"
	self, err := os.Executable() // on Linux with symbolic links resolved
	if err != nil {
		return "", fmt.Errorf("cannot find urdma's own file: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if path, err = exec.LookPath(name); err != nil {
		return "", fmt.Errorf("%s is neither beside %s nor in PATH; \"make build\" builds it", name, self)
	}
	return path, nil
}
