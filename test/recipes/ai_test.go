package recipes

import "testing"

// ai are the sections of docs/recipes-ai.md.
var ai = map[string]recipe{
	"NCCL": {[]string{"gcc", "$URDMA_RECIPES/nccl/net.h", "$URDMA_RECIPES/libnccl-net.so"}, []string{""},
		[]string{"100 messages, all bytes right"}},
	"gloo": {[]string{"$URDMA_RECIPES/benchmark"}, []string{""}, []string{"400000     100000"}},
	"UCCL": {[]string{"$URDMA_RECIPES/transport_test"}, []string{"19999"}, []string{"Iteration 19 done"}},
	"Mooncake": {[]string{"$URDMA_RECIPES/transfer_engine_validator"}, []string{""},
		[]string{"Data validation passed"}},
	"Python: mpi4py": {[]string{"mpirun", "/usr/lib/python3/dist-packages/mpi4py/MPI.cpython-*.so"}, []string{""},
		[]string{"the sum has 100000 numbers, of {0, 1}"}},
	"Rust": {[]string{"$URDMA_RECIPES/loopback", "$URDMA_RECIPES/rc_pingpong"}, []string{"", "18515"},
		[]string{"received", "1000 iters"}},
}

func TestAIRecipes(t *testing.T) {
	cook(t, "../../docs/recipes-ai.md", ai)
}
