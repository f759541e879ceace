package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urdma/config"
	"urdma/urdma/manualtest"
)

// The pages in docs/man must match what the commands and the schema print now.
func TestManualPagesAreCurrent(t *testing.T) {
	root := newRoot()
	root.InitDefaultCompletionCmd()
	golden(t, "../docs/man/urdma.1", manualtest.Command(root, commandSections))
	golden(t, "../docs/man/urdma.json.5", manualtest.Config(fileIntroduction, fileSections))
}

func TestExamplesOfTheManualAreCorrect(t *testing.T) {
	for _, item := range fileSections[0].Items {
		if err := config.CheckBytes(item[0], []byte(item[1])); err != nil {
			t.Error(err)
		}
	}
}

func TestManualPagesRender(t *testing.T) {
	pages, err := filepath.Glob("../docs/man/*.[1-9]")
	if err != nil || len(pages) < 3 {
		t.Fatalf("pages %q, error %v", pages, err)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("SKIPPED: groff is not installed, and this test renders the manual pages")
	}
	for _, page := range pages {
		out, err := exec.Command(groff, "-man", "-ww", "-Tutf8", "-P-cbou", page).CombinedOutput()
		if err != nil || strings.Contains(string(out), ": warning") {
			t.Errorf("%s: %v\n%s", page, err, linesWith(out, ": warning", ": error"))
		}
		if source := linesWith(out, `\[`); source != "" {
			t.Errorf("%s renders with source in it:\n%s", page, source)
		}
		if !strings.Contains(string(out), "\nSee also\n") {
			t.Errorf("%s renders without its end", page)
		}
		if !strings.Contains(string(out), "\nExamples\n") {
			t.Errorf("%s has no examples", page)
		}
	}
}

// linesWith returns those lines of a rendered page that contain one of the texts.
func linesWith(page []byte, texts ...string) (found string) {
	for line := range strings.Lines(string(page)) {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) }) {
			found += line
		}
	}
	return found
}

var commandSections = []manualtest.Section{
	{Title: "Exit status", Items: [][2]string{
		{"0", "Success."},
		{"1", "Failure."},
		{"2", "Wrong usage, or an error in a configuration."},
		{"124", "urdma run stopped the program after --timeout."},
		{"125", "urdma exec or run failed before the program started, or urdmad failed under urdma run."},
		{"126", "The program exists but cannot be run, or not on urdmad."},
		{"127", "There is no such program."},
		{"other", "The program's own, under urdma exec and run; 128 + N if signal N ended it under urdma run."},
	}},
	{Title: "Environment", Items: [][2]string{
		{"URDMA_SOCKET", "Control socket of urdmad. urdma exec sets it for the program, to --socket or to the first " +
			"default place that has a socket: $XDG_RUNTIME_DIR/urdma/urdmad.sock, /run/user/UID/urdma/urdmad.sock, " +
			"/run/urdma/urdmad.sock, /tmp/urdma-UID/urdmad.sock."},
		{"URDMA_TRANSPORT", "Kind of device that the program sees: iwarp, ib or roce. Set by urdma exec --transport."},
		{"URDMA_PROFILE", "Adapter as which the program sees the devices; it counts more than URDMA_TRANSPORT. Set by urdma " +
			"exec --profile. If urdmad does not know it, the process finds no devices."},
		{"NO_COLOR", "If set, urdma status and show print no colours on a terminal. To a file or pipe they never print " +
			"colours."},
		{"URDMA_LOG", "1: the library logs on standard error what it does. Set by urdma exec --log."},
		{"URDMA_NAMES", "1: the library's lines on standard error name the program and its process. Set by urdma run " +
			"--hosts 2."},
		{"URDMA_LOCAL_ADDRESSES", "IPv4 addresses of other urdmads of this machine, separated by commas: the program's TCP " +
			"connections to them go to the local host. Set by urdma run --hosts 2."},
		{"URDMA_WARN", "1: warn on standard error of mistakes that have not failed yet; error: end the process at the " +
			"first. Set by urdma exec --warn."},
		{"URDMA_INJECT", "Statements of urdma inject for this process only; they end with it. Set by urdma exec --inject. " +
			"If urdmad refuses them, the process finds no devices."},
		{"URDMA_SHARE_MALLOC", "Which memory from malloc urdmad can map: unset, pieces that are aligned to a page or more, " +
			"such as I/O buffers; 1 or a size (4G), these and all pieces of 128 KiB or more, up to that size in all; 0, none. " +
			"For the library that urdma exec preloads; set by --share-malloc. Other memory that a program registers stays " +
			"where it is, and is accessed through /proc, which is slower."},
		{"URDMA_STRICT", "Behaviours of urdma exec --strict for this process only: all or 1, or some of them. Set by " +
			"urdma exec --strict. docs/debugging.md says what each does, and what allows it."},
		{"LD_PRELOAD", "urdma exec puts liburdma.so before the libraries that are already listed, and liburdma-malloc.so " +
			"after them unless URDMA_SHARE_MALLOC is 0."},
		{"LD_LIBRARY_PATH", "urdma exec puts liburdma.d, the directory next to liburdma.so, before the directories that " +
			"are already listed. It has the library under the names of libibverbs and librdmacm, for programs that no preload " +
			"reaches (a library opened with RTLD_DEEPBIND or dlmopen, a program that removes LD_PRELOAD from its " +
			"environment). It is not added if this machine's libraries have symbol versions that liburdma.so lacks."},
		{"OMPI_MCA_*", "For a rank of Open MPI (under mpirun or srun --mpi=pmix) whose btl parameter names openib, and for " +
			"mpirun, urdma exec sets URDMA_TRANSPORT=ib, btl_openib_allow_ib=1 and btl_openib_warn_no_device_params_found=0; " +
			"mpi_yield_when_idle=1 if ranks fill the processors; UCX_USE_MT_MUTEX=y if pml names ucx. It keeps whatever the " +
			"user has set, here or in Open MPI's files. URDMA_LOG=1 prints what was set."},
		{"ASAN_OPTIONS", "urdma exec adds verify_asan_link_order=0, without which programs built with AddressSanitizer " +
			"refuse a preload."},
	}},
	{Title: "Examples", Items: [][2]string{
		{"urdma run -- make check", "Tests that need RDMA devices, on a urdmad of their own."},
		{"urdma run --hosts 2 -- rping -s -C 5 :: rping -c -a 198.18.0.1 -C 5 -v", "rping between two urdmads."},
		{"urdma exec -- rping -s -a 198.18.0.1 -v",
			"A server on the machine's urdmad; a client is urdma exec -- rping -c -a 198.18.0.1 -v."},
		{"urdma doctor -- ib_write_bw", "Why ib_write_bw might not work here."},
		{"urdma ping -c 3 10.9.0.2", "Whether another urdmad answers, and how fast."},
		{"watch urdma show qp", "The queue pairs, over and over."},
		{"urdma capture -o rping.pcapng --host :7174", "The packets of rping's port number, for Wireshark."},
		{"urdma config init --interface eth1 >urdma.json", "A configuration for the network interface eth1."},
	}},
	{Title: "See also", Text: "urdma.json(5), urdmad(8), rping(1), ld.so(8)"},
}

var fileIntroduction = []manualtest.Section{
	{Text: "urdmad(8) reads one configuration file, named by its option --config, and without one runs with a single " +
		"loopback port. " +
		"The file is one JSON object (RFC 8259) in UTF-8. Only ports must be given; every other property has a default."},
	{Text: "A property that is not described here stops urdma config check, which names the nearest known one; urdmad " +
		"warns about it and goes on. " +
		"Everything else that is wrong stops urdmad with exit status 2: a wrong type, a number out of range, a property " +
		"given twice, bytes after the end, two ports with one address. " +
		"Each error names the file, the line, the property, what was found and what is allowed."},
	{Text: "JSON has no comments. In every object a property whose name begins with \"$comment\" may hold a string or " +
		"an array of strings; it is ignored."},
	{Text: "A file of the C urdma is valid as it stands."},
}

var fileSections = []manualtest.Section{
	{Title: "Examples", Items: [][2]string{
		{"Programs of one machine:", `{ "ports": [ { "vdev": "loopback", "ipv4_address": "198.18.0.1/24" } ] }`},
		{"A NIC bound to vfio-pci, jumbo frames, a core for the poll loop:", `{
  "ports": [ { "pci_address": "0000:03:00.0", "ipv4_address": "10.2.0.100/24", "mtu": 9000 } ],
  "workers": [ { "core": 3 } ]
}`},
		{"Two daemons of one machine joined by shared memory; the other has role=client and 10.2.0.2:", `{
  "ports": [ { "vdev": "memif,role=server,socket=/tmp/wire.sock", "ipv4_address": "10.2.0.1/24" } ],
  "socket": "/tmp/urdmad-1.sock"
}`},
	}},
	{Title: "See also", Text: "urdma(1), urdmad(8)"},
}
