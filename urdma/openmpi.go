package main

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// openMPIFiles are the files from which Open MPI reads parameters that are neither on the command line nor in the
// environment. The first file that has a parameter decides.
func openMPIFiles(env []string) []string {
	files := []string{"/etc/openmpi/openmpi-mca-params.conf"}
	if home := getenv(env, "HOME"); home != "" {
		files = append([]string{filepath.Join(home, ".openmpi", "mca-params.conf")}, files...)
	}
	return files
}

// launchers start MPI programs and pass their environment on.
var launchers = []string{"mpirun", "mpiexec", "orterun", "mpirun.openmpi", "mpiexec.openmpi"}

// mpiShared is how much of a rank's memory malloc shares with urdmad. Larger arrays remain ordinary memory, of which
// the kernel can make huge pages.
const mpiShared = "64M"

// openMPI adds what Open MPI's openib component needs besides a library:
//   - an InfiniBand device, because of the way it connects
//   - permission to use InfiniBand, which is off by default
//   - no warning about missing parameters for this device
//   - ranks that yield when they fill all processors, because urdmad needs one, too
//   - message buffers that urdmad can map: Open MPI registers what the program passes to it, which malloc seldom aligns
//   - a lock for UCX on which threads sleep: UCX polls with its lock held, and our poll yields, so threads that spin
//     for the lock would keep the processor from its holder
//
// A program that is neither a launcher nor a rank may be a script that starts mpirun. It gets Open MPI's parameters,
// which others ignore, if the user shows the devices as ib.
//
// It sets only what the user did not set, and returns what it set.
func openMPI(env []string, args []string) (_ []string, set []string) {
	var given []string
	launches := slices.Contains(launchers, filepath.Base(args[0]))
	if launches {
		given = parametersOf(args)
	}
	user := slices.Concat(given, env)
	give := func(name, value string) {
		if !has(env, name) {
			env = setenv(env, name, value)
			set = append(set, name+"="+value)
		}
	}
	parameter := func(name, value string) {
		if !has(user, "OMPI_MCA_"+name) && configured(openMPIFiles(env), name) == "" {
			give("OMPI_MCA_"+name, value)
		}
	}
	permit := func() {
		parameter("btl_openib_allow_ib", "1")
		parameter("btl_openib_warn_no_device_params_found", "0")
	}
	if !launches && !isRank(env) {
		if getenv(env, "URDMA_TRANSPORT") == "ib" {
			permit()
		}
		return env, set
	}
	openib := chooses(user, "btl", "openib")
	if openib {
		give("URDMA_TRANSPORT", "ib")
		permit()
	}
	ucx := chooses(user, "pml", "ucx")
	if ucx {
		give("UCX_USE_MT_MUTEX", "y")
	}
	if openib || ucx {
		give("URDMA_SHARE_MALLOC", mpiShared)
	}
	if ranksHere(env) >= runtime.NumCPU() {
		parameter("mpi_yield_when_idle", "1")
	}
	return env, set
}

// isRank reports whether mpirun or another PMIx server, such as srun --mpi=pmix, started this process.
func isRank(env []string) bool {
	return getenv(env, "OMPI_COMM_WORLD_SIZE") != "" || getenv(env, "PMIX_RANK") != ""
}

// ranksHere is the number of ranks on this host, 0 if unknown. srun lists all hosts, as in "2(x3),1"; the largest
// number is then returned.
func ranksHere(env []string) (most int) {
	if n, err := strconv.Atoi(getenv(env, "OMPI_COMM_WORLD_LOCAL_SIZE")); err == nil {
		return n
	}
	for each := range strings.SplitSeq(getenv(env, "SLURM_STEP_TASKS_PER_NODE"), ",") {
		count, _, _ := strings.Cut(each, "(")
		if n, err := strconv.Atoi(count); err == nil {
			most = max(most, n)
		}
	}
	return most
}

// parametersOf returns the parameters on a launcher's command line in the form of the ranks' environment.
func parametersOf(args []string) (env []string) {
	for i, a := range args {
		if name := strings.TrimLeft(a, "-"); name != a && (name == "mca" || name == "gmca") && i+2 < len(args) {
			env = append(env, "OMPI_MCA_"+args[i+1]+"="+args[i+2])
		}
	}
	return env
}

// chooses reports whether the user named a component of a framework.
func chooses(env []string, framework, component string) bool {
	list := getenv(env, "OMPI_MCA_"+framework)
	if list == "" {
		list = configured(openMPIFiles(env), framework)
	}
	return !strings.HasPrefix(list, "^") && slices.Contains(strings.Split(list, ","), component)
}

// configured is a parameter's value in the first file that has it, or "".
func configured(files []string, name string) string {
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			continue
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			key, value, ok := strings.Cut(lines.Text(), "=")
			if ok && strings.TrimSpace(key) == name {
				return strings.Trim(strings.TrimSpace(value), `"`)
			}
		}
	}
	return ""
}

func has(env []string, name string) bool {
	return slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
}
