package labtest

// notInTest are the programs of tests that "make deps" does not install, and what
// does.
var notInTest = map[string]string{
	"mkdocs": ".ci/deps docs", "mandoc": ".ci/deps docs",
	"sockperf": ".ci/deps bench",
	"munged":   ".ci/deps long", "slurmctld": ".ci/deps long", "slurmd": ".ci/deps long",
	"srun": ".ci/deps long", "salloc": ".ci/deps long", "sbatch": ".ci/deps long",
	"perf": "the package linux-perf has it (perf on Fedora)",
}

// Install says what installs a program that a test lacks.
func Install(program string) string {
	if how, ok := notInTest[program]; ok {
		return how
	}
	return "make deps"
}
