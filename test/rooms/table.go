package main

// ruleBook is what the tree is held to.
type ruleBook struct {
	// may names, for every package of ours, the packages of ours that its
	// production files import: these and no others, each of them used.
	may map[string][]string
	// mustNot names what a package must not know, even by way of others:
	// packages of ours, with all below them, and foreign ones.
	mustNot map[string][]string
}

// sockets are what talks to other processes.
var sockets = []string{"net", "os", "golang.org/x/sys/unix", "urdmad/events"}

// packets are the rooms that know what travels in one.
var packets = []string{"dpdk", "urdmad/netif", "urdmad/neighbour", "urdmad/trp", "urdmad/reliable"}

var rules = ruleBook{
	may: map[string][]string{
		// The wire and the ports.
		"ancillary":          {},
		"reason":             {},
		"wire":               {},
		"dpdk":               {"dpdk/loopback", "dpdk/memif", "dpdk/netdev", "dpdk/port", "dpdk/udp"},
		"dpdk/netdev":        {},
		"urdmad/kernelif":    {},
		"dpdk/loopback":      {"dpdk/port"},
		"dpdk/memif":         {"ancillary", "dpdk/port"},
		"dpdk/udp":           {"dpdk/netdev", "dpdk/port"},
		"dpdk/port":          {},
		"dpdk/port/porttest": {"dpdk/port"},

		// What a worker is made of, from the bottom up.
		"urdmad/clock":                 {},
		"urdmad/due":                   {},
		"urdmad/mailbox":               {},
		"urdmad/fault":                 {},
		"urdmad/events":                {"urdmad/clock"},
		"urdmad/mem":                   {"verbs/abi"},
		"urdmad/recorder":              {"urdmad/clock", "verbs/abi"},
		"urdmad/qp":                    {"counters", "reason", "urdmad/clock", "urdmad/events", "urdmad/mailbox", "urdmad/mem", "urdmad/recorder", "verbs/abi", "verbs/ring"},
		"urdmad/rdmap":                 {"reason", "urdmad/mem", "urdmad/qp", "verbs/abi", "wire"},
		"urdmad/samehost":              {"reason", "urdmad/clock", "urdmad/mem", "urdmad/qp", "urdmad/rdmap", "verbs/abi"},
		"urdmad/reliable":              {"urdmad/clock", "wire"},
		"urdmad/reliable/reliabletest": {"urdmad/reliable", "wire"},
		"urdmad/impair":                {"dpdk/port", "inject", "urdmad/clock"},
		"urdmad/neighbour":             {"urdmad/due", "wire"},
		"urdmad/pathmtu":               {"urdmad/due"},
		"urdmad/netif":                 {"dpdk/port", "urdmad/clock", "urdmad/neighbour", "urdmad/pathmtu", "wire"},
		"urdmad/trp":                   {"counters", "reason", "urdmad/clock", "urdmad/netif", "urdmad/qp", "urdmad/rdmap", "urdmad/reliable", "verbs/abi", "wire"},
		"urdmad/datagram":              {"urdmad/clock", "urdmad/mem", "urdmad/netif", "urdmad/qp", "verbs/abi", "wire"},
		"urdmad/mpa":                   {"counters", "reason", "urdmad/clock", "urdmad/qp", "urdmad/rdmap", "verbs/abi", "wire"},
		"urdmad/engine":                {"dpdk/port", "urdmad/clock", "urdmad/datagram", "urdmad/fault", "urdmad/mailbox", "urdmad/mpa", "urdmad/netif", "urdmad/qp", "urdmad/rdmap", "urdmad/reliable", "urdmad/samehost", "urdmad/trp", "verbs/abi", "verbs/ring", "wire"},
		"urdmad/engine/enginetest":     {"dpdk/port", "test/linked", "urdmad/clock", "urdmad/cm", "urdmad/connect", "urdmad/datagram", "urdmad/engine", "urdmad/events", "urdmad/mem", "urdmad/netif", "urdmad/qp", "verbs/abi", "verbs/ring", "wire"},
		"urdmad/worker":                {"urdmad/clock", "urdmad/fault"},

		// Connections, and what clients and administrators meet.
		"urdmad/cm":                  {"urdmad/clock", "wire"},
		"urdmad/qpconnect":           {"urdmad/clock", "urdmad/cm", "wire"},
		"urdmad/connect":             {"reason", "urdmad/clock", "urdmad/cm", "urdmad/engine", "urdmad/mpa", "urdmad/netif", "urdmad/qp", "urdmad/qpconnect", "urdmad/samehost", "urdmad/trp", "verbs/abi", "verbs/personality", "wire"},
		"urdmad/control/account":     {"urdmad/clock", "urdmad/control/process"},
		"urdmad/control/memfd":       {},
		"urdmad/control":             {"ancillary", "counters", "dpdk/port", "inject", "inspect", "reason", "urdmad/clock", "urdmad/cm", "urdmad/connect", "urdmad/control/account", "urdmad/control/memfd", "urdmad/control/process", "urdmad/datagram", "urdmad/engine", "urdmad/events", "urdmad/fault", "urdmad/impair", "urdmad/mem", "urdmad/mpa", "urdmad/neighbour", "urdmad/netif", "urdmad/qp", "urdmad/recorder", "urdmad/trp", "verbs/abi", "verbs/personality", "verbs/ring", "wire"},
		"urdmad/control/process":     {},
		"urdmad/control/controltest": {"verbs/abi", "verbs/ring", "verbs/session"},
		"urdmad/fabric":              {},
		"urdmad/umad":                {"ancillary", "urdmad/fabric", "verbs/abi"},
		"urdmad/sysfs":               {"verbs/personality"},
		"urdmad/metrics":             {"inspect"},
		"urdmad/responder":           {"verbs", "verbs/probe"},
		"counters":                   {},
		"urdmad/logs":                {},
		"inject":                     {"verbs/abi"},
		"inspect":                    {"ancillary", "counters", "verbs/abi", "verbs/ring"},
		"config":                     {"schema", "verbs/personality"},
		"schema":                     {},
		"systemd":                    {},
		"urdmad":                     {"counters", "config", "dpdk", "dpdk/port", "inspect", "systemd", "urdmad/clock", "urdmad/cm", "urdmad/connect", "urdmad/control", "urdmad/control/account", "urdmad/engine", "urdmad/fabric", "urdmad/kernelif", "urdmad/logs", "urdmad/metrics", "urdmad/netif", "urdmad/responder", "urdmad/sysfs", "urdmad/umad", "urdmad/umad", "urdmad/worker", "verbs/personality", "verbs/probe"},

		// What clients are built of.
		"verbs/abi":         {},
		"verbs/personality": {"verbs/abi"},
		"verbs/ring":        {"verbs/abi"},
		"verbs/probe":       {},
		"verbs/yield":       {},
		"verbs":             {"reason", "verbs/abi", "verbs/cmid", "verbs/ring", "verbs/session", "verbs/yield"},
		"verbs/session":     {"ancillary", "verbs/abi"},
		"verbs/cmid":        {"verbs/abi", "verbs/session"},
		"verbs/lib/pages":   {},
		"verbs/lib/cm/test": {},
		"verbs/lib/test":    {},

		// The command.
		"urdma/manualtest": {"schema"},
		"urdma/report":     {"inspect"},
		"urdma/top":        {"inspect", "urdma/report"},
		"urdma/capture":    {"inspect", "verbs/abi"},
		"urdma/trace":      {"reason", "urdma/capture", "verbs/abi"},
		"urdma/doctor":     {"config", "inspect", "verbs/probe"},
		"urdma/private":    {"inspect"},
		"urdma/measure":    {"inspect", "urdma/report", "verbs", "verbs/probe"},
		"wireshark":        {},
		"urdma":            {"config", "inject", "inspect", "reason", "urdma/capture", "urdma/doctor", "urdma/measure", "urdma/private", "urdma/report", "urdma/top", "urdma/trace", "verbs/abi", "verbs/personality", "wireshark"},

		// Measuring, testing, showing.
		"bench":               {"bench/report", "bench/results", "bench/suite"},
		"bench/floor/floord":  {"urdmad/clock", "urdmad/worker"},
		"bench/memif":         {"bench/testpmd", "dpdk/memif", "dpdk/port"},
		"examples/go/ping":    {"verbs"},
		"examples/go/srq":     {"verbs"},
		"examples/go/ud":      {"verbs"},
		"bench/results":       {},
		"bench/report":        {"bench/results"},
		"bench/suite":         {"bench/results", "bench/testpmd", "test/lab", "verbs", "wire"},
		"bench/testpmd":       {},
		"test/arm64":          {},
		"test/bystander":      {"verbs"},
		"test/container":      {},
		"test/demo":           {"test/lab"},
		"test/e2e":            {},
		"test/faults":         {},
		"test/fresh":          {},
		"test/hostile":        {},
		"test/lab":            {"test/relay"},
		"test/lab/labtest":    {"test/lab"},
		"test/linked":         {"dpdk/port"},
		"test/mpi":            {},
		"test/programs":       {},
		"test/recipes":        {},
		"test/pyverbs":        {},
		"test/relay":          {},
		"test/relay/udprelay": {"test/relay"},
		"test/report":         {},
		"test/rooms":          {},
		"test/service":        {},
		"test/soak":           {},
		"test/vm":             {},
		"verbs/abi/generate":  {},
	},

	mustNot: map[string][]string{
		"wire":              {"dpdk", "urdmad", "verbs"},
		"dpdk/port":         {"wire", "urdmad", "verbs"},
		"dpdk/udp":          {"wire", "urdmad", "verbs"},
		"urdmad/clock":      {"time"},
		"urdmad/reliable":   append(sockets[:len(sockets):len(sockets)], "time", "dpdk", "verbs", "urdmad/mem", "urdmad/qp"),
		"urdmad/mem":        append(packets[:len(packets):len(packets)], "wire", "urdmad/qp"),
		"urdmad/qp":         append(packets[:len(packets):len(packets)], "wire", "urdmad/rdmap", "urdmad/cm"),
		"urdmad/rdmap":      append(packets[:len(packets):len(packets)], "urdmad/cm"),
		"urdmad/samehost":   append(packets[:len(packets):len(packets)], "urdmad/cm"),
		"urdmad/datagram":   {"urdmad/trp", "urdmad/reliable", "urdmad/rdmap", "urdmad/cm"},
		"urdmad/netif":      {"urdmad/trp", "urdmad/reliable", "urdmad/qp", "urdmad/cm", "verbs"},
		"urdmad/trp":        {"urdmad/cm", "dpdk/memif"},
		"urdmad/engine":     {"urdmad/cm", "urdmad/control", "config"},
		"urdmad/cm":         append(sockets[:len(sockets):len(sockets)], "urdmad/engine", "urdmad/trp", "dpdk", "verbs"),
		"urdmad/qpconnect":  append(sockets[:len(sockets):len(sockets)], "urdmad/engine", "urdmad/trp", "dpdk", "verbs"),
		"urdmad/connect":    {"urdmad/control", "config"},
		"urdmad/fabric":     append(packets[:len(packets):len(packets)], "net", "os", "golang.org/x/sys/unix", "time", "verbs", "urdmad/qp", "urdmad/engine", "urdmad/control"),
		"urdmad/worker":     append(packets[:len(packets):len(packets)], "wire", "urdmad/engine", "verbs"),
		"urdmad/control":    {"urdma", "config"},
		"urdmad/metrics":    {"urdma", "config", "urdmad/engine", "urdmad/control"},
		"inspect":           {"urdma", "urdmad"},
		"config":            {"urdmad"},
		"counters":          {"inspect", "urdmad", "verbs"},
		"verbs":             {"urdmad", "dpdk", "wire"},
		"verbs/session":     {"urdmad", "dpdk", "wire", "verbs/ring"},
		"verbs/cmid":        {"urdmad", "dpdk", "wire", "verbs/ring"},
		"verbs/personality": {"urdmad", "dpdk", "wire"},
	},
}
