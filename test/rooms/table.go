package main

// ruleBook is what the tree is held to.
type ruleBook struct {
	// may names, for every package of ours, the packages of ours that its
	// production files import: these and no others, each of them used.
	may map[string][]string
	// mustNot names what a package must not know, even by way of others:
	// packages of ours, with all below them, and foreign ones.
	mustNot map[string][]string
	// below is mustNot for all packages in and below a folder but test kits.
	below map[string][]string
}

// attached are the features that the core and control do without.
var attached = []string{"event", "inject", "inspect", "reason/words", "urdmad/attach"}

// sockets are what talks to other processes.
var sockets = []string{"net", "os", "golang.org/x/sys/unix", "urdmad/core/events"}

// packets are the rooms that know what travels in one.
var packets = []string{"dpdk", "urdmad/core/netif", "urdmad/core/neighbour", "urdmad/core/trp", "urdmad/core/reliable"}

var rules = ruleBook{
	may: map[string][]string{
		// The wire and the ports.
		"ancillary":              {},
		"reason":                 {},
		"reason/words":           {"reason", "verbs/abi"},
		"event":                  {"reason", "reason/words", "verbs/abi"},
		"wire":                   {},
		"wire/ibcm":              {"wire", "wire/roce"},
		"wire/roce":              {"wire"},
		"dpdk":                   {"dpdk/loopback", "dpdk/memif", "dpdk/netdev", "dpdk/port", "dpdk/udp"},
		"dpdk/netdev":            {},
		"urdmad/attach/kernelif": {},
		"dpdk/loopback":          {"dpdk/port"},
		"dpdk/memif":             {"ancillary", "dpdk/port"},
		"dpdk/udp":               {"dpdk/netdev", "dpdk/port"},
		"dpdk/port":              {},
		"dpdk/port/porttest":     {"dpdk/port"},

		// What a worker is made of, from the bottom up.
		"urdmad/core/clock":                 {},
		"urdmad/core/due":                   {},
		"urdmad/core/pingpong":              {"urdmad/core/clock"},
		"urdmad/core/mailbox":               {},
		"urdmad/core/places":                {"urdmad/core/due"},
		"urdmad/core/fault":                 {},
		"urdmad/core/events":                {"urdmad/core/clock"},
		"urdmad/core/mem":                   {"verbs/abi"},
		"urdmad/attach/recorder":            {"urdmad/core/clock", "verbs/abi"},
		"urdmad/core/qp":                    {"counters", "reason", "urdmad/core/clock", "urdmad/core/events", "urdmad/core/mailbox", "urdmad/core/mem", "verbs/abi", "verbs/ring"},
		"urdmad/core/rdmap":                 {"reason", "urdmad/core/mem", "urdmad/core/qp", "verbs/abi", "wire"},
		"urdmad/core/samehost":              {"reason", "urdmad/core/clock", "urdmad/core/mem", "urdmad/core/pingpong", "urdmad/core/qp", "urdmad/core/rdmap", "verbs/abi"},
		"urdmad/core/reliable":              {"urdmad/core/clock", "urdmad/core/pingpong", "wire"},
		"urdmad/core/reliable/reliabletest": {"urdmad/core/reliable", "wire"},
		"urdmad/attach/impair":              {"dpdk/port", "inject", "urdmad/core/clock"},
		"urdmad/core/steer":                 {"dpdk/port", "wire", "wire/ibcm", "wire/roce"},
		"urdmad/core/neighbour":             {"urdmad/core/due", "wire"},
		"urdmad/core/pathmtu":               {"urdmad/core/due"},
		"urdmad/core/netif":                 {"dpdk/port", "urdmad/core/clock", "urdmad/core/neighbour", "urdmad/core/pathmtu", "wire"},
		"urdmad/core/trp":                   {"counters", "reason", "urdmad/core/clock", "urdmad/core/datagram", "urdmad/core/netif", "urdmad/core/qp", "urdmad/core/rdmap", "urdmad/core/reliable", "verbs/abi", "wire"},
		"urdmad/core/datagram":              {"urdmad/core/clock", "urdmad/core/mem", "urdmad/core/netif", "urdmad/core/qp", "verbs/abi", "wire"},
		"urdmad/core/mpa":                   {"counters", "reason", "urdmad/core/clock", "urdmad/core/pingpong", "urdmad/core/places", "urdmad/core/qp", "urdmad/core/rdmap", "verbs/abi", "wire"},
		"urdmad/core/rc":                    {"urdmad/core/clock", "wire/roce"},
		"urdmad/core/roce":                  {"reason", "urdmad/core/clock", "urdmad/core/datagram", "urdmad/core/mem", "urdmad/core/netif", "urdmad/core/qp", "urdmad/core/rc", "verbs/abi", "wire", "wire/ibcm", "wire/roce"},
		"urdmad/core/engine":                {"dpdk/port", "urdmad/core/clock", "urdmad/core/datagram", "urdmad/core/fault", "urdmad/core/mailbox", "urdmad/core/mpa", "urdmad/core/netif", "urdmad/core/qp", "urdmad/core/rdmap", "urdmad/core/reliable", "urdmad/core/roce", "urdmad/core/samehost", "urdmad/core/trp", "verbs/abi", "verbs/ring", "wire"},
		"urdmad/core/engine/enginetest":     {"dpdk/loopback", "dpdk/port", "test/linked", "urdmad/attach/tap", "urdmad/core/clock", "urdmad/core/cm", "urdmad/core/connect", "urdmad/core/datagram", "urdmad/core/engine", "urdmad/core/events", "urdmad/core/mem", "urdmad/core/netif", "urdmad/core/qp", "urdmad/core/steer", "verbs/abi", "verbs/ring", "wire", "wire/roce"},
		"urdmad/core/worker":                {"urdmad/core/clock"},

		// Connections, and what clients and administrators meet.
		"urdmad/core/cm":             {"urdmad/core/clock", "urdmad/core/places", "wire"},
		"urdmad/core/qpconnect":      {"urdmad/core/clock", "urdmad/core/cm", "wire"},
		"urdmad/core/connect":        {"reason", "urdmad/core/clock", "urdmad/core/cm", "urdmad/core/engine", "urdmad/core/mpa", "urdmad/core/netif", "urdmad/core/qp", "urdmad/core/qpconnect", "urdmad/core/roce", "urdmad/core/samehost", "urdmad/core/trp", "verbs/abi", "verbs/personality", "wire", "wire/ibcm"},
		"urdmad/control/account":     {"urdmad/core/clock", "urdmad/control/process"},
		"urdmad/control/memfd":       {},
		"urdmad/control":             {"ancillary", "urdmad/control/account", "urdmad/control/memfd", "urdmad/control/process", "urdmad/core/clock", "urdmad/core/cm", "urdmad/core/connect", "urdmad/core/datagram", "urdmad/core/engine", "urdmad/core/events", "urdmad/core/mem", "urdmad/core/qp", "verbs/abi", "verbs/personality", "verbs/ring", "wire"},
		"urdmad/control/process":     {},
		"urdmad/attach/tap":          {"urdmad/core/engine", "urdmad/core/mpa", "urdmad/core/netif", "urdmad/core/qp", "urdmad/core/rdmap", "urdmad/core/samehost", "urdmad/core/trp", "wire"},
		"urdmad/attach/watch":        {"event", "inspect", "reason", "reason/words", "urdmad/attach/recorder", "urdmad/attach/snapshot", "urdmad/attach/tap", "urdmad/control", "urdmad/control/account", "urdmad/control/memfd", "urdmad/core/clock", "urdmad/core/cm", "urdmad/core/connect", "urdmad/core/mem", "urdmad/core/qp", "verbs/abi", "verbs/ring", "wire"},
		"urdmad/attach/injector":     {"dpdk/port", "inject", "inspect", "reason", "urdmad/attach/impair", "urdmad/attach/snapshot", "urdmad/control", "urdmad/control/account", "urdmad/core/clock", "urdmad/core/cm", "urdmad/core/mem", "urdmad/core/qp", "verbs/abi"},
		"urdmad/control/controltest": {"dpdk/loopback", "dpdk/port", "urdmad/control", "urdmad/core/cm", "urdmad/core/connect", "urdmad/core/engine", "urdmad/core/netif", "urdmad/core/worker", "verbs/abi", "verbs/personality", "verbs/ring", "verbs/session"},
		"urdmad/serve":               {"config", "dpdk", "dpdk/port", "urdmad/control", "urdmad/control/account", "urdmad/core/clock", "urdmad/core/cm", "urdmad/core/connect", "urdmad/core/engine", "urdmad/core/netif", "urdmad/core/steer", "urdmad/core/worker", "verbs/personality", "wire", "wire/roce"},
		"topology":                   {},
		"urdmad/attach/fabric":       {"topology"},
		"urdmad/attach/umad":         {"ancillary", "topology", "urdmad/attach/fabric", "urdmad/control", "urdmad/control/account", "verbs/abi"},
		"urdmad/attach/sysfs":        {"inject", "verbs/personality"},
		"urdmad/attach/admin":        {"reason", "urdmad/control", "urdmad/core/qp", "verbs/abi"},
		"urdmad/attach/snapshot":     {"counters", "dpdk/port", "inspect", "reason/words", "urdmad/control", "urdmad/control/account", "urdmad/control/process", "urdmad/core/clock", "urdmad/core/cm", "urdmad/core/connect", "urdmad/core/engine", "urdmad/core/mpa", "urdmad/core/neighbour", "urdmad/core/netif", "urdmad/core/qp", "urdmad/core/roce", "urdmad/core/trp", "verbs/abi", "verbs/personality", "wire"},
		"urdmad/attach/metrics":      {"inspect"},
		"urdmad/attach/responder":    {"verbs", "verbs/probe"},
		"counters":                   {},
		"urdmad/logs":                {},
		"inject":                     {"verbs/abi"},
		"inspect":                    {"ancillary", "counters", "verbs/abi", "verbs/ring"},
		"config":                     {"schema", "topology", "verbs/personality"},
		"schema":                     {},
		"systemd":                    {},
		"urdmad":                     {"config", "counters", "dpdk", "dpdk/port", "inject", "inspect", "systemd", "urdmad/attach/admin", "urdmad/attach/fabric", "urdmad/attach/injector", "urdmad/attach/kernelif", "urdmad/attach/metrics", "urdmad/attach/responder", "urdmad/attach/snapshot", "urdmad/attach/sysfs", "urdmad/attach/umad", "urdmad/attach/watch", "urdmad/control", "urdmad/control/account", "urdmad/core/clock", "urdmad/core/mailbox", "urdmad/core/netif", "urdmad/core/steer", "urdmad/core/worker", "urdmad/logs", "urdmad/serve", "verbs/abi", "verbs/personality", "verbs/probe"},

		// What clients are built of.
		"verbs/abi":         {},
		"verbs/personality": {"verbs/abi"},
		"verbs/ring":        {"verbs/abi"},
		"verbs/probe":       {},
		"verbs/yield":       {},
		"verbs":             {"reason", "reason/words", "verbs/abi", "verbs/cmid", "verbs/ring", "verbs/session", "verbs/yield"},
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
		"urdma/trace":      {"event", "urdma/capture", "verbs/abi", "wire", "wire/roce"},
		"urdma/doctor":     {"config", "inspect", "verbs/probe"},
		"urdma/private":    {"inspect"},
		"urdma/measure":    {"inspect", "urdma/report", "verbs", "verbs/probe"},
		"wireshark":        {},
		"urdma":            {"config", "event", "inject", "inspect", "reason", "reason/words", "urdma/capture", "urdma/doctor", "urdma/measure", "urdma/private", "urdma/report", "urdma/top", "urdma/trace", "verbs/abi", "verbs/personality", "wireshark"},

		// Measuring, testing, showing.
		"bench":                {"bench/report", "bench/results", "bench/suite"},
		"bench/floor/floord":   {"urdmad/core/clock", "urdmad/core/worker"},
		"bench/memif":          {"bench/testpmd", "dpdk/memif", "dpdk/port"},
		"examples/go/ping":     {"verbs"},
		"examples/go/srq":      {"verbs"},
		"examples/go/ud":       {"verbs"},
		"bench/results":        {},
		"bench/report":         {"bench/results"},
		"bench/suite":          {"bench/results", "bench/testpmd", "test/lab", "verbs", "wire"},
		"bench/testpmd":        {},
		"test/arm64":           {},
		"test/bystander":       {"verbs"},
		"test/container":       {},
		"test/core/coreurdmad": {"config", "urdmad/control", "urdmad/core/worker", "urdmad/serve", "verbs/abi"},
		"test/demo":            {"test/lab"},
		"test/e2e":             {},
		"test/faults":          {},
		"test/fresh":           {},
		"test/hostile":         {},
		"test/lab":             {"test/relay"},
		"test/lab/labtest":     {"test/lab"},
		"test/linked":          {"dpdk/port"},
		"test/mpi":             {},
		"test/programs":        {},
		"test/recipes":         {},
		"test/release":         {},
		"test/pyverbs":         {},
		"test/relay":           {},
		"test/relay/udprelay":  {"test/relay"},
		"test/report":          {},
		"test/rooms":           {},
		"test/service":         {},
		"test/soak":            {},
		"test/vm":              {},
		"test/walk":            {},
		"test/walk/record":     {},
		"test/writers":         {},
		"verbs/abi/generate":   {},
	},

	below: map[string][]string{
		"urdmad/core":    append(attached[:len(attached):len(attached)], "urdmad/control", "urdmad/serve"),
		"urdmad/control": append(attached[:len(attached):len(attached)], "urdmad/serve"),
		"urdmad/serve":   attached,
		"test/core":      attached,
	},

	mustNot: map[string][]string{
		"wire":                  {"dpdk", "urdmad", "verbs"},
		"dpdk/port":             {"wire", "urdmad", "verbs"},
		"dpdk/udp":              {"wire", "urdmad", "verbs"},
		"urdmad/core/clock":     {"time"},
		"urdmad/core/reliable":  append(sockets[:len(sockets):len(sockets)], "time", "dpdk", "verbs", "urdmad/core/mem", "urdmad/core/qp"),
		"urdmad/core/mem":       append(packets[:len(packets):len(packets)], "wire", "urdmad/core/qp"),
		"urdmad/core/qp":        append(packets[:len(packets):len(packets)], "wire", "urdmad/core/rdmap", "urdmad/core/cm"),
		"urdmad/core/rdmap":     append(packets[:len(packets):len(packets)], "urdmad/core/cm"),
		"urdmad/core/samehost":  append(packets[:len(packets):len(packets)], "urdmad/core/cm"),
		"urdmad/core/rc":        append(sockets[:len(sockets):len(sockets)], "time", "dpdk", "verbs", "urdmad/core/mem", "urdmad/core/qp"),
		"urdmad/core/roce":      {"urdmad/core/trp", "urdmad/core/reliable", "urdmad/core/rdmap", "urdmad/core/cm"},
		"urdmad/core/datagram":  {"wire/roce", "urdmad/core/trp", "urdmad/core/reliable", "urdmad/core/rdmap", "urdmad/core/cm"},
		"urdmad/core/netif":     {"urdmad/core/trp", "urdmad/core/reliable", "urdmad/core/qp", "urdmad/core/cm", "verbs"},
		"urdmad/core/trp":       {"urdmad/core/cm", "dpdk/memif"},
		"urdmad/core/engine":    {"urdmad/core/cm", "urdmad/control", "config"},
		"urdmad/core/cm":        append(sockets[:len(sockets):len(sockets)], "urdmad/core/engine", "urdmad/core/trp", "dpdk", "verbs"),
		"urdmad/core/qpconnect": append(sockets[:len(sockets):len(sockets)], "urdmad/core/engine", "urdmad/core/trp", "dpdk", "verbs"),
		"urdmad/core/connect":   {"urdmad/control", "config"},
		"urdmad/attach/fabric":  append(packets[:len(packets):len(packets)], "net", "os", "golang.org/x/sys/unix", "time", "verbs", "urdmad/core/qp", "urdmad/core/engine", "urdmad/control"),
		"urdmad/core/worker":    append(packets[:len(packets):len(packets)], "wire", "urdmad/core/engine", "verbs"),
		"urdmad/control":        {"urdma", "config"},
		"urdmad/attach/metrics": {"urdma", "config", "urdmad/core/engine", "urdmad/control"},
		"inspect":               {"urdma", "urdmad"},
		"config":                {"urdmad"},
		"counters":              {"inspect", "urdmad", "verbs"},
		"verbs":                 {"urdmad", "dpdk", "wire"},
		"verbs/session":         {"urdmad", "dpdk", "wire", "verbs/ring"},
		"verbs/cmid":            {"urdmad", "dpdk", "wire", "verbs/ring"},
		"verbs/personality":     {"urdmad", "dpdk", "wire"},
	},
}
