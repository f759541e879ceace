package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const librarySource = `
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
	if (write(2, "preloaded\n", 10) != 10)
		_exit(99);
}
`

// The program prints its arguments and environment and exits with the status in its first argument.
const programSource = `
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
static void show(const char *name)
{
	const char *value = getenv(name);
	printf("%s=%s\n", name, value ? value : "(unset)");
}
int main(int argc, char **argv)
{
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	for (int i = 0; i < argc; i++)
		printf("arg %s\n", argv[i]);
	show("LD_PRELOAD");
	show("URDMA_SOCKET");
	show("URDMA_TRANSPORT");
	show("URDMA_PROFILE");
	show("URDMA_LOG");
	printf("pid %d files %ld\n", (int)getpid(), (long)files.rlim_cur);
	fflush(stdout);
	if (argc > 1 && argv[1][0] == 'k')
		raise(SIGTERM);
	return argc > 1 ? atoi(argv[1]) : 0;
}
`

// ground holds a library and programs to run.
type ground struct{ dir, lib, program string }

func newGround(t *testing.T) ground {
	t.Helper()
	dir := t.TempDir()
	return ground{
		dir:     dir,
		lib:     compile(t, filepath.Join(dir, libraryName), librarySource, "-shared", "-fPIC"),
		program: compile(t, filepath.Join(dir, "program"), programSource),
	}
}

type result struct {
	stdout, stderr string
	status         syscall.WaitStatus
	pid            int
}

func run(t *testing.T, env []string, args ...string) result {
	t.Helper()
	return runAs(t, nil, env, args...)
}

func runAs(t *testing.T, who *syscall.Credential, env []string, args ...string) result {
	t.Helper()
	cmd := exec.Command(urdmaBinary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	if who != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.Sys().(syscall.WaitStatus), cmd.ProcessState.Pid()}
}

func (r result) holds(t *testing.T, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains("\n"+r.stdout, "\n"+l+"\n") {
			t.Errorf("no line %q in:\n%s%s", l, r.stdout, r.stderr)
		}
	}
}

func TestExecBecomesTheProgram(t *testing.T) {
	g := newGround(t)
	r := run(t, []string{"LD_PRELOAD=", "XDG_RUNTIME_DIR=" + g.dir},
		"exec", "--lib", g.lib, "--transport", "roce", "--log", "--", g.program, "7", "--log", "-x", "a b")
	r.holds(t, "arg "+g.program, "arg 7", "arg --log", "arg -x", "arg a b", "LD_PRELOAD="+g.lib,
		"URDMA_TRANSPORT=roce", "URDMA_LOG=1")
	if !strings.Contains(r.stdout, "URDMA_SOCKET=/") {
		t.Errorf("no socket:\n%s", r.stdout)
	}
	if r.status.ExitStatus() != 7 || r.stderr != "preloaded\n" {
		t.Errorf("status %d, stderr %q", r.status.ExitStatus(), r.stderr)
	}
	if !strings.Contains(r.stdout, "pid "+strconv.Itoa(r.pid)+" ") {
		t.Errorf("another process than the one started, %d:\n%s", r.pid, r.stdout)
	}
}

// TestExecProfile: the last of nested choices counts.
func TestExecProfile(t *testing.T) {
	g := newGround(t)
	run(t, []string{"URDMA_TRANSPORT=ib"}, "exec", "--lib", g.lib, "--profile", "cx6", g.program, "0").
		holds(t, "URDMA_PROFILE=cx6")
	run(t, []string{"URDMA_PROFILE=cx6"}, "exec", "--lib", g.lib, "--transport", "ib", g.program, "0").
		holds(t, "URDMA_PROFILE=", "URDMA_TRANSPORT=ib")
	r := run(t, nil, "exec", "--lib", g.lib, "--profile", "cx", g.program)
	if r.status.ExitStatus() != exitExec || !strings.Contains(r.stderr, "allowed: cx6, cx6-ib, e810, t6") {
		t.Errorf("status %d, %s", r.status.ExitStatus(), r.stderr)
	}
}

func TestExecKeepsSignalsLimitsAndEnvironment(t *testing.T) {
	g := newGround(t)
	r := run(t, []string{"URDMA_SOCKET=/a/b.sock", "URDMA_TRANSPORT=ib"}, "exec", "--lib", g.lib, g.program, "kill")
	if !r.status.Signaled() || r.status.Signal() != syscall.SIGTERM {
		t.Errorf("status %v, want ended by SIGTERM", r.status)
	}
	r.holds(t, "URDMA_SOCKET=/a/b.sock", "URDMA_TRANSPORT=ib", "URDMA_LOG=(unset)", "LD_PRELOAD="+g.lib)

	// Go raises its own limit of open files at start-up. The program must not inherit that (select(2) breaks beyond
	// 1024).
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("sh", "-c", "ulimit -S -n 321; exec "+urdmaBinary+" exec --lib "+g.lib+" "+g.program)
	out, err := shell.Output()
	if err != nil || !strings.Contains(string(out), " files 321\n") {
		t.Errorf("limit of open files not kept (%v):\n%s", err, out)
	}
}

func TestExecSocketAndOtherPreloads(t *testing.T) {
	g := newGround(t)
	second := compile(t, filepath.Join(g.dir, "second.so"), "int second_library;", "-shared", "-fPIC")
	r := run(t, []string{"LD_PRELOAD=" + second + " " + g.lib, "URDMA_SOCKET=/a"}, "exec", "--lib", g.lib, "--socket",
		"here.sock", "--", g.program)
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	r.holds(t, "LD_PRELOAD="+g.lib+":"+second, "URDMA_SOCKET="+wd+"/here.sock")
}

// makeNames makes the directory that has a symbolic link under the name of each library that ours replaces.
func makeNames(t *testing.T, lib string) string {
	t.Helper()
	dir := filepath.Join(filepath.Dir(lib), "liburdma.d")
	if err := errors.Join(os.MkdirAll(dir, 0o755),
		os.Symlink("../"+filepath.Base(lib), filepath.Join(dir, "libibverbs.so.1"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestExecGivesTheNames: a program that loads a library by name finds ours in the directory next to it, before any
// other.
func TestExecGivesTheNames(t *testing.T) {
	lib, err := filepath.Abs("../build/" + libraryName)
	if _, missing := os.Stat(lib); err != nil || missing != nil {
		t.Skip("SKIPPED: build/liburdma.so is not built")
	}
	g := newGround(t)
	copyFile(t, lib, g.lib)
	dir := makeNames(t, g.lib)
	for before, want := range map[string]string{"": dir, "/a:/b": dir + ":/a:/b", dir + ":/a": dir + ":/a",
		"/a:" + dir: dir + ":/a"} {
		run(t, []string{"LD_LIBRARY_PATH=" + before}, "exec", "--lib", g.lib, "env").holds(t, "LD_LIBRARY_PATH="+want)
	}
	for before, want := range map[string]string{"": "", "detect_leaks=0": "detect_leaks=0:"} {
		run(t, []string{"ASAN_OPTIONS=" + before}, "exec", "--lib", g.lib, "env").holds(t,
			"ASAN_OPTIONS="+want+"verify_asan_link_order=0")
	}
	run(t, []string{"ASAN_OPTIONS=verify_asan_link_order=1"}, "exec", "--lib", g.lib, "env").holds(t,
		"ASAN_OPTIONS=verify_asan_link_order=1")
}

// TestExecUnderOpenMPI: the settings that the openib component needs reach ranks and launchers that use it, and
// never replace the user's.
func TestExecUnderOpenMPI(t *testing.T) {
	rank, openib := "OMPI_COMM_WORLD_SIZE=2", "OMPI_MCA_btl=self,openib"
	allow, transport := "OMPI_MCA_btl_openib_allow_ib=1", "URDMA_TRANSPORT=ib"
	shared := "URDMA_SHARE_MALLOC=" + mpiShared
	home := t.TempDir()
	conf := filepath.Join(home, ".openmpi", "mca-params.conf")
	if err := os.MkdirAll(filepath.Dir(conf), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, conf, "# a file of the user's\nbtl = openib,self\nbtl_openib_allow_ib = 0\n", 0o644)
	for _, c := range []struct {
		env, has, lacks []string
		program         string
	}{
		{nil, []string{allow, transport}, nil, "mpirun -n 2 --mca btl openib,self p"},
		{nil, []string{transport}, []string{allow}, "mpirun -mca btl openib,self -mca btl_openib_allow_ib 0 p"},
		{nil, nil, []string{transport, shared}, "mpirun -n 2 p"},
		{[]string{rank, openib}, []string{allow, transport, "OMPI_MCA_btl_openib_warn_no_device_params_found=0"}, nil, "p"},
		{[]string{openib}, []string{allow, transport, shared}, nil, "/usr/bin/mpirun"},
		{[]string{rank, openib, "URDMA_SHARE_MALLOC=0"}, nil, []string{shared}, "p"},
		{[]string{openib}, nil, []string{allow, transport}, "p"},
		{[]string{transport}, []string{allow}, []string{shared}, "/bin/sh script"},
		{[]string{transport, "OMPI_MCA_btl_openib_allow_ib=0"}, nil, []string{allow}, "/bin/sh script"},
		{[]string{rank, "OMPI_MCA_btl=^openib"}, nil, []string{allow, transport}, "p"},
		{[]string{rank, "OMPI_MCA_pml=ucx"}, []string{"UCX_USE_MT_MUTEX=y", shared}, []string{allow, transport}, "p"},
		{[]string{rank, "OMPI_MCA_pml=ucx", "UCX_USE_MT_MUTEX=n"}, []string{"UCX_USE_MT_MUTEX=n"},
			[]string{"UCX_USE_MT_MUTEX=y"}, "p"},
		{[]string{rank, openib}, nil, []string{"UCX_USE_MT_MUTEX=y"}, "p"},
		{[]string{rank, "OMPI_MCA_btl=tcp,self"}, nil, []string{allow, transport, shared}, "p"},
		{[]string{rank, openib, "URDMA_TRANSPORT=roce", "OMPI_MCA_btl_openib_allow_ib=0"},
			[]string{"URDMA_TRANSPORT=roce", "OMPI_MCA_btl_openib_allow_ib=0"}, []string{allow, transport}, "p"},
		{[]string{rank, "HOME=" + home}, []string{transport}, []string{allow}, "p"},
		{[]string{rank, "OMPI_COMM_WORLD_LOCAL_SIZE=4096"}, []string{"OMPI_MCA_mpi_yield_when_idle=1"}, nil, "p"},
		{[]string{rank, "OMPI_COMM_WORLD_LOCAL_SIZE=4096", "OMPI_MCA_mpi_yield_when_idle=0"}, nil,
			[]string{"OMPI_MCA_mpi_yield_when_idle=1"}, "p"},
		{[]string{"PMIX_RANK=0", openib}, []string{allow, transport}, []string{"OMPI_MCA_mpi_yield_when_idle=1"}, "p"},
		{[]string{"PMIX_RANK=0", "SLURM_STEP_TASKS_PER_NODE=1,4096(x2),1"}, []string{"OMPI_MCA_mpi_yield_when_idle=1"}, nil,
			"p"},
		{[]string{rank, "OMPI_COMM_WORLD_LOCAL_SIZE=1", "SLURM_STEP_TASKS_PER_NODE=4096"}, nil,
			[]string{"OMPI_MCA_mpi_yield_when_idle=1"}, "p"},
	} {
		env, set := openMPI(slices.Clone(c.env), strings.Fields(c.program))
		for _, e := range c.has {
			if !slices.Contains(env, e) {
				t.Errorf("%v %s: no %s in %v", c.env, c.program, e, env)
			}
		}
		for _, e := range c.lacks {
			if slices.Contains(env, e) || slices.Contains(set, e) {
				t.Errorf("%v %s: %s in %v", c.env, c.program, e, env)
			}
		}
	}
	g := newGround(t)
	r := run(t, []string{rank, openib, "URDMA_LOG=1"}, "exec", "--lib", g.lib, g.program)
	if r.holds(t, transport); !strings.Contains(r.stderr, "for Open MPI: "+transport+" ") {
		t.Errorf("doesn't say what it set: %s", r.stderr)
	}
}

// TestExecLeavesNewerLibraries: if the machine's libraries have symbol versions that ours lacks, programs linked
// with them would not start with ours.
func TestExecLeavesNewerLibraries(t *testing.T) {
	g := newGround(t) // its library has no versions at all
	makeNames(t, g.lib)
	if installed, _ := filepath.Glob("/usr/lib/*/libibverbs.so.1"); len(installed) == 0 {
		t.Skip("SKIPPED: no libibverbs is installed to compare with")
	}
	if r := run(t, nil, "exec", "--lib", g.lib, "env"); strings.Contains(r.stdout, "LD_LIBRARY_PATH") {
		t.Errorf("stands in for a library with more versions:\n%s", r.stdout)
	}
}

func TestExecFindsItsLibrary(t *testing.T) {
	g := newGround(t)
	for _, c := range []struct{ self, lib string }{
		{"build/urdma", "build/liburdma.so"},
		{"prefix/bin/urdma", "prefix/lib/liburdma.so"},
		{"usr/bin/urdma", "usr/lib/x86_64-linux-gnu/liburdma.so"},
		{"opt/bin/urdma", "opt/lib/urdma/liburdma.so"},
	} {
		dir := t.TempDir()
		self, lib := filepath.Join(dir, c.self), filepath.Join(dir, c.lib)
		copyFile(t, urdmaBinary, self)
		copyFile(t, g.lib, lib)
		link := filepath.Join(dir, "urdma-link")
		if err := os.Symlink(self, link); err != nil {
			t.Fatal(err)
		}
		for _, how := range []string{self, link} {
			out, err := exec.Command(how, "exec", g.program).Output()
			if err != nil || !strings.Contains(string(out), "LD_PRELOAD="+lib+"\n") {
				t.Errorf("%s: %v\n%s", how, err, out)
			}
		}
	}
	r := run(t, nil, "exec", g.program)
	if r.status.ExitStatus() != exitExec || !strings.Contains(r.stderr, "liburdma.so not found; looked for /") {
		t.Errorf("without a library: status %d, %s", r.status.ExitStatus(), r.stderr)
	}
}

func TestExecRefusals(t *testing.T) {
	g := newGround(t)
	static := compile(t, filepath.Join(g.dir, "static"), programSource, "-static")
	staticPIE := compile(t, filepath.Join(g.dir, "static-pie"), programSource, "-static-pie")
	musl := compile(t, filepath.Join(g.dir, "musl"), programSource, "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
	script := write(t, filepath.Join(g.dir, "script"), "#!"+static+" -x\n", 0o755)
	lost := write(t, filepath.Join(g.dir, "lost"), "#!/nonexistent/interpreter\n", 0o755)
	loop := filepath.Join(g.dir, "loop")
	write(t, loop, "#!"+loop+"\n", 0o755)
	data := write(t, filepath.Join(g.dir, "data"), "no program\n", 0o644)
	garbage := write(t, filepath.Join(g.dir, "garbage"), "\x7fELFgarbage", 0o755)
	foreign := otherMachine(t, g.program, filepath.Join(g.dir, "foreign"))
	spaced := filepath.Join(g.dir, "with space.so")
	copyFile(t, g.lib, spaced)
	lib := []string{"exec", "--lib", g.lib, "--"}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{append(lib, static), exitCannotRun, "is statically linked"},
		{append(lib, musl), exitCannotRun, "is linked with musl"},
		{append(lib, staticPIE), exitCannotRun, "is statically linked"},
		{append(lib, script), exitCannotRun, "(the interpreter of " + script + ") is statically linked"},
		{append(lib, lost), exitCannotRun, "no such file"},
		{append(lib, loop), exitCannotRun, "more than 4 interpreters"},
		{append(lib, data), exitCannotRun, "not executable"},
		{append(lib, garbage), exitCannotRun, "cannot run"},
		{append(lib, foreign), exitCannotRun, "for AARCH64 64 and"},
		{append(lib, g.dir), exitCannotRun, ""},
		{append(lib, "no-such-program-anywhere"), exitNotFound, "no such program in PATH"},
		{append(lib, "/no/such/program"), exitNotFound, "no such program there"},
		{[]string{"exec"}, exitExec, "no program given"},
		{[]string{"exec", "--nonsense", "true"}, exitExec, "unknown flag: --nonsense"},
		{[]string{"exec", "--lib", g.lib, "--transport", "eth", "true"}, exitExec, "allowed: iwarp, ib, roce"},
		{[]string{"exec", "--lib", "/no/such.so", "true"}, exitExec, "no such file"},
		{[]string{"exec", "--lib", spaced, "true"}, exitExec, "a space or a colon"},
		{[]string{"exec", "--lib", data, "true"}, exitCannotRun, "is no shared library"},
	} {
		r := run(t, nil, c.args...)
		if r.status.ExitStatus() != c.status || !strings.Contains(r.stderr, c.says) ||
			!strings.HasPrefix(r.stderr, "urdma exec: ") {
			t.Errorf("%q: status %d, want %d saying %q; said %s", c.args, r.status.ExitStatus(), c.status, c.says, r.stderr)
		}
	}
}

func TestExecRunsScripts(t *testing.T) {
	g := newGround(t)
	for name, head := range map[string]string{"direct": "#!/bin/sh", "through env": "#!/usr/bin/env sh",
		"with spaces": "#!  /bin/sh -e"} {
		script := write(t, filepath.Join(g.dir, "script"), head+"\n"+g.program+" $1\n", 0o755)
		r := run(t, nil, "exec", "--lib", g.lib, script, "5")
		if r.status.ExitStatus() != 5 ||
			r.stderr != "preloaded\npreloaded\n" && r.stderr != "preloaded\npreloaded\npreloaded\n" {
			t.Errorf("%s: status %d, stderr %q", name, r.status.ExitStatus(), r.stderr)
		}
	}
}

// A program that gains privileges when started ignores LD_PRELOAD. For a user who has these privileges already, it
// does not.
func TestExecRefusesPrivilege(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: making a setuid file of another user needs root")
	}
	g := newGround(t)
	openToAll(t, g.dir)
	const nobody = 65534
	other := &syscall.Credential{Uid: nobody, Gid: nobody}
	setuid := privilegedCopy(t, g, "setuid", 0o4755, 0, 0)
	setgid := privilegedCopy(t, g, "setgid", 0o2755, 0, nobody)
	capable := filepath.Join(g.dir, "capable")
	copyFile(t, g.program, capable)
	// struct vfs_cap_data, revision 2, effective, CAP_NET_RAW permitted.
	capability := []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(capable, "security.capability", capability, 0); err != nil {
		t.Skipf("SKIPPED: this file system keeps no file capabilities: %v", err)
	}
	for _, c := range []struct {
		who     *syscall.Credential
		program string
		says    string
	}{
		{other, setuid, "is setuid to uid 0"},
		{nil, setuid, ""},
		{nil, setgid, "is setgid to gid 65534"},
		{other, setgid, ""},
		{other, capable, "has file capabilities"},
		{nil, capable, ""},
		{other, g.program, ""},
	} {
		r := runAs(t, c.who, nil, "exec", "--lib", g.lib, c.program)
		status := 0
		if c.says != "" {
			status = exitCannotRun
		}
		if r.status.ExitStatus() != status || !strings.Contains(r.stderr, c.says) {
			t.Errorf("%s as %v: status %d, said %s", c.program, c.who, r.status.ExitStatus(), r.stderr)
		}
		if status == 0 && r.stderr != "preloaded\n" {
			t.Errorf("%s as %v: accepted, but the library was not loaded: %q", c.program, c.who, r.stderr)
		}
	}
}

func privilegedCopy(t *testing.T, g ground, name string, mode uint32, uid, gid int) string {
	t.Helper()
	path := filepath.Join(g.dir, name)
	copyFile(t, g.program, path)
	if err := os.Chown(path, uid, gid); err != nil {
		t.Fatal(err)
	}
	if err := unix.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// openToAll lets other users read a test's directory.
func openToAll(t *testing.T, dir string) {
	t.Helper()
	for d := dir; strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// otherMachine copies a program and changes its e_machine.
func otherMachine(t *testing.T, from, to string) string {
	t.Helper()
	src, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	const machineOffset, aarch64 = 18, 0xb7
	src[machineOffset], src[machineOffset+1] = aarch64, 0
	return write(t, to, string(src), 0o755)
}

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	src, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, to, string(src), 0o755)
}

// TestExecShareMalloc: the allocator is the last library preloaded, and absent with --share-malloc 0. A
// liburdma.so without it works, unless the user asks for the allocator.
func TestExecShareMalloc(t *testing.T) {
	g := newGround(t)
	if r := run(t, nil, "exec", "--lib", g.lib, "--share-malloc", "--", g.program); r.status.ExitStatus() != exitExec ||
		!strings.Contains(r.stderr, "--share-malloc needs a library beside") {
		t.Errorf("without its library: status %d, %s", r.status.ExitStatus(), r.stderr)
	}
	if err := os.Mkdir(filepath.Join(g.dir, "liburdma.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	malloc := compile(t, filepath.Join(g.dir, "liburdma.d", "liburdma-malloc.so"), "int urdma_malloc_test;", "-shared",
		"-fPIC")
	other := compile(t, filepath.Join(g.dir, "other.so"), "int other;", "-shared", "-fPIC")
	for _, c := range []struct{ flag, env, size, last string }{
		{"--share-malloc", "", "1", ":" + malloc}, {"--share-malloc=64M", "0", "64M", ":" + malloc},
		{"--share-malloc=0", "1", "0", ""}, {"--log", "", "", ":" + malloc}, {"--log", "0", "0", ""},
		{"--log", "2G", "2G", ":" + malloc},
	} {
		r := run(t, []string{"LD_PRELOAD=" + other, "URDMA_SHARE_MALLOC=" + c.env}, "exec", "--lib", g.lib, c.flag, "--",
			"/bin/sh", "-c", "echo LD_PRELOAD=$LD_PRELOAD; echo size $URDMA_SHARE_MALLOC.")
		r.holds(t, "LD_PRELOAD="+g.lib+":"+other+c.last, "size "+c.size+".")
	}
	for _, wrong := range []string{"2", "64", "64m", "4G ", "-1G", "G"} {
		if r := run(t, nil, "exec", "--lib", g.lib, "--share-malloc="+wrong, "--",
			g.program); r.status.ExitStatus() != exitExec || !strings.Contains(r.stderr, "as in 4G") {
			t.Errorf("--share-malloc=%q: status %d, %s", wrong, r.status.ExitStatus(), r.stderr)
		}
	}
}
