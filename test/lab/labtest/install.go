package labtest

// notInTest lists the programs of tests that "make deps" does not install, and the commands that do.
var notInTest = map[string]string{
	"mkdocs": ".ci/deps docs", "mandoc": ".ci/deps docs",
	"sockperf": ".ci/deps bench",
	"munged":   ".ci/deps long", "slurmctld": ".ci/deps long", "slurmd": ".ci/deps long",
	"srun": ".ci/deps long", "salloc": ".ci/deps long", "sbatch": ".ci/deps long",
	"qemu-system-x86_64": ".ci/deps long",
	"ceph-mon":           ".ci/deps long", "ceph-osd": ".ci/deps long", "rados": ".ci/deps long",
	"perf": "the package linux-perf has it (perf on Fedora)",
}

// Install returns the command that installs a program.
func Install(program string) string {
	if how, ok := notInTest[program]; ok {
		return how
	}
	return "make deps"
}
