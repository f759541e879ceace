package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"urdma/config"
	"urdma/inject"
	"urdma/verbs/personality"

	"github.com/spf13/cobra"
)

var transports = personality.Names()

// execOptions are the flags of urdma exec.
type execOptions struct {
	transport, profile   string
	socket, lib          string
	inject, strict, warn string
	shareMalloc          string
	log, explain         bool
	wait                 time.Duration // how long to wait for a urdmad; 0: not at all
}

func newExec() *cobra.Command {
	var o execOptions
	cmd := &cobra.Command{
		Use:   "exec [flags] -- PROGRAM [ARGUMENT...]",
		Short: "run a program on urdmad's RDMA devices",
		Long: "Run PROGRAM, unmodified, with liburdma.so preloaded: its calls of libibverbs and librdmacm then go to " +
			"urdmad, also if it loads these libraries by dlopen. urdma becomes the program, so its process ID, " +
			"signals, exit status and standard streams are the program's own. Child processes use urdmad, " +
			"too.\n\nA program that is statically linked or gains privileges when started cannot be preloaded and " +
			"is refused. If no urdmad runs, the program finds no RDMA devices; --log shows where it " +
			"searched.\n\nTo run a child program without urdmad: env -u LD_PRELOAD -u LD_LIBRARY_PATH PROGRAM. " +
			"urdma itself needs 1 GB of address space, as Go programs do; set a smaller limit after it: urdma exec " +
			"-- sh -c 'ulimit -v 400000; exec PROGRAM'.",
		Example: "  urdma exec -- rping -s -v\n" +
			"  urdma exec --transport roce -- ib_write_bw -R 10.2.0.100\n" +
			"  urdma exec --profile cx6 -- ib_write_bw -d mlx5_0 -x 3 10.2.0.100\n" +
			"  urdma exec --log -- ibv_devices",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return withStatus(exitExec, errors.New("no program given; use: urdma exec [flags] -- PROGRAM [ARGUMENT...]"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return runExec(o, args) },
	}
	f := cmd.Flags()
	o.addTo(cmd)
	f.StringVar(&o.socket, "socket", "",
		"`PATH` of urdmad's control socket (default: $URDMA_SOCKET, or the first default place with a socket)")
	addWait(cmd, &o.wait)
	return cmd
}

// addTo adds the flags for starting a program.
func (o *execOptions) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after the program's name belong to the program
	f.StringVar(&o.transport, "transport", "",
		"`TRANSPORT` as which the program sees the devices: iwarp, ib or roce (default: as urdma.json says)")
	f.StringVar(&o.profile, "profile", "",
		"adapter `NAME` as which the program sees the devices, by names and numbers: "+
			strings.Join(personality.ProfileNames(), ", ")+" (default: as urdma.json says)")
	f.StringVar(&o.lib, "lib", "",
		"`PATH` of the liburdma.so to preload (default: next to urdma, or where it was installed)")
	f.StringVar(&o.inject, "inject", "",
		"`STATEMENTS` of urdma inject for this program only (URDMA_INJECT), or @FILE with them")
	f.StringVar(&o.strict, "strict", "",
		"`BEHAVIOURS` that specifications allow and hardware seldom shows, for this program only (URDMA_STRICT): all, or "+
			"names and limits, separated by commas, as in --strict=srq-order,max_sge:3,seed:7")
	f.Lookup("strict").NoOptDefVal = "all"
	f.BoolVar(&o.log, "log", false, "log on standard error what the library does (URDMA_LOG=1)")
	f.BoolVar(&o.explain, "explain", false,
		"explain on standard error why completions, requests and connections failed (URDMA_EXPLAIN=1)")
	f.StringVar(&o.warn, "warn", "",
		"warn on standard error of mistakes that have not failed yet (URDMA_WARN=1); with `MODE` error (--warn=error) "+
			"the first mistake ends the program with exit status 86")
	f.Lookup("warn").NoOptDefVal = "1"
	f.StringVar(&o.shareMalloc, "share-malloc", "",
		"let malloc return memory that urdmad can map for all pieces of 128 KiB or more, not only for page-aligned ones; "+
			"at most `SIZE` in all, as in --share-malloc=4G (default: the machine's memory), or 0 for none (URDMA_SHARE_MALLOC)")
	f.Lookup("share-malloc").NoOptDefVal = "1"
	for flag, names := range map[string][]string{"transport": transports, "profile": personality.ProfileNames()} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	}
	cmd.MarkFlagsMutuallyExclusive("transport", "profile") // a profile has a transport
}

// runExec returns only if the program could not be started.
func runExec(o execOptions, args []string) error {
	lib, err := o.library()
	if err != nil {
		return err
	}
	program, err := preloadable(args[0], lib)
	if err != nil {
		return err
	}
	if o.wait > 0 {
		look := lookOptions{socket: o.socket, wait: o.wait}
		if err := look.await(); err != nil {
			return err
		}
	}
	env, err := o.environment(os.Environ(), lib, args)
	if err != nil {
		return err
	}
	err = syscall.Exec(program, args, env)
	return withStatus(exitCannotRun, fmt.Errorf("cannot run %s: %w", program, err))
}

// library makes the checks that do not depend on the program.
func (o execOptions) library() (string, error) {
	if o.transport != "" && !slices.Contains(transports, o.transport) {
		return "", fmt.Errorf("--transport is %q, allowed: %s", o.transport, strings.Join(transports, ", "))
	}
	if personality.ProfileNamed(o.profile) == nil {
		return "", fmt.Errorf("--profile is %q, allowed: %s", o.profile, strings.Join(personality.ProfileNames(), ", "))
	}
	if o.warn != "" && o.warn != "1" && o.warn != "error" {
		return "", fmt.Errorf("--warn is %q, allowed: 1, error", o.warn)
	}
	if o.shareMalloc != "" && !sizeForm.MatchString(o.shareMalloc) {
		return "", fmt.Errorf("--share-malloc is %q, allowed: 0, or a number of bytes with K, M, G or T behind it, as in 4G",
			o.shareMalloc)
	}
	return findLibrary(o.lib)
}

var sizeForm = regexp.MustCompile(`^([01]|[1-9][0-9]*[KMGT])$`)

// mallocLibrary is the path of the library whose malloc gives out shared memory; "" for none. If liburdma.so is
// installed without it, that is an error only if the user asked for it.
func mallocLibrary(lib, wish string) (string, error) {
	if wish == "0" {
		return "", nil
	}
	path := filepath.Join(filepath.Dir(lib), "liburdma.d", "liburdma-malloc.so")
	switch _, err := os.Stat(path); {
	case err == nil:
		return path, nil
	case wish == "":
		return "", nil
	default:
		return "", fmt.Errorf("--share-malloc needs a library beside %s: %w", lib, err)
	}
}

// preloadable finds a program and checks that the library can be preloaded into it.
func preloadable(name, lib string) (string, error) {
	program, err := findProgram(name)
	if err != nil {
		return "", err
	}
	return program, withStatus(exitCannotRun, checkPreloadable(program, lib))
}

// findProgram searches PATH as a shell does.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		where := "in PATH"
		if strings.ContainsRune(name, '/') {
			where = "there"
		}
		return "", withStatus(exitNotFound, fmt.Errorf("%s: no such program %s", name, where))
	case errors.Is(err, exec.ErrDot):
		return "", withStatus(exitNotFound, fmt.Errorf("%s: found only in the current directory; write ./%s", name, name))
	case errors.Is(err, fs.ErrPermission):
		return "", withStatus(exitCannotRun, fmt.Errorf("%s: not executable", name))
	}
	return "", withStatus(exitCannotRun, err)
}

// environment is the program's environment: ours, with the variables that the library and Open MPI read.
func (o execOptions) environment(env []string, lib string, args []string) ([]string, error) {
	env = slices.Clone(env)
	if o.shareMalloc != "" {
		env = setenv(env, "URDMA_SHARE_MALLOC", o.shareMalloc)
	}
	malloc, err := mallocLibrary(lib, getenv(env, "URDMA_SHARE_MALLOC"))
	if err != nil {
		return nil, err
	}
	env = setenv(env, "LD_PRELOAD", preload(lib, malloc, getenv(env, "LD_PRELOAD")))
	if dir := namesDirectory(lib); dir != "" {
		env = setenv(env, "LD_LIBRARY_PATH", inFront(dir, getenv(env, "LD_LIBRARY_PATH")))
	}
	env = setenv(env, "ASAN_OPTIONS", sanitizerOptions(getenv(env, "ASAN_OPTIONS")))
	switch {
	case o.socket != "":
		socket, err := filepath.Abs(o.socket)
		if err != nil {
			return nil, fmt.Errorf("--socket %s: %w", o.socket, err)
		}
		if fi, err := os.Stat(socket); err == nil && fi.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("--socket %s: it is no socket", socket)
		}
		env = setenv(env, "URDMA_SOCKET", socket)
	case getenv(env, "URDMA_SOCKET") == "":
		env = setenv(env, "URDMA_SOCKET", config.FindSocket())
	}
	if o.transport != "" { // also within urdma exec --profile
		env = setenv(setenv(env, "URDMA_TRANSPORT", o.transport), "URDMA_PROFILE", "")
	}
	if o.profile != "" {
		env = setenv(env, "URDMA_PROFILE", o.profile)
	}
	if o.inject != "" {
		statements, err := statementsOf(o.inject)
		if err != nil {
			return nil, fmt.Errorf("--inject: %w", err)
		}
		env = setenv(env, "URDMA_INJECT", statements)
	}
	if o.strict != "" {
		if _, err := inject.Parse("strict " + o.strict); err != nil {
			return nil, withStatus(exitUsage, fmt.Errorf("--strict: %w", err))
		}
		env = setenv(env, "URDMA_STRICT", o.strict)
	}
	if o.log {
		env = setenv(env, "URDMA_LOG", "1")
	}
	if o.explain {
		env = setenv(env, "URDMA_EXPLAIN", "1")
	}
	if o.warn != "" {
		env = setenv(env, "URDMA_WARN", o.warn)
	}
	env, set := openMPI(env, args)
	if log := getenv(env, "URDMA_LOG"); len(set) > 0 && log != "" && log != "0" {
		fmt.Fprintln(os.Stderr, "urdma exec: for Open MPI:", strings.Join(set, " "))
	}
	return env, nil
}

// preload puts our library before those already preloaded, because its definitions must win. The malloc library, if
// any, comes last: an allocator that the user preloads stays. ld.so(8) accepts spaces and colons between libraries.
func preload(lib, malloc, before string) string {
	list := []string{lib}
	for _, l := range strings.FieldsFunc(before, func(r rune) bool { return r == ' ' || r == ':' }) {
		if l != lib && l != malloc {
			list = append(list, l)
		}
	}
	if malloc != "" {
		list = append(list, malloc)
	}
	return strings.Join(list, ":")
}

// inFront puts a directory at the front of a list. An empty entry, which means the current directory to ld.so(8),
// is kept.
func inFront(dir, before string) string {
	if before == "" {
		return dir
	}
	list := slices.DeleteFunc(strings.Split(before, ":"), func(d string) bool { return d == dir })
	return strings.Join(append([]string{dir}, list...), ":")
}

// sanitizerOptions lets a program built with AddressSanitizer start although its runtime is not the first library.
func sanitizerOptions(before string) string {
	const order = "verify_asan_link_order"
	switch {
	case strings.Contains(before, order):
		return before
	case before == "":
		return order + "=0"
	}
	return before + ":" + order + "=0"
}

func getenv(env []string, name string) string {
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// setenv replaces every entry with that name.
func setenv(env []string, name, value string) []string {
	env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	return append(env, name+"="+value)
}
