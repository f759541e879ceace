package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"urdma/schema"
	"urdma/verbs/personality"

	"github.com/tidwall/gjson"
)

// reader takes values by gjson from a document that passed the schema, and
// defaults from the schema where the document has none.
type reader struct {
	doc      *document
	json     gjson.Result
	settings []Setting
}

// read makes the effective configuration. It trusts types and ranges; what
// it cannot make sense of (an address of 999.0.0.1) it leaves zero for
// checkRules to refuse.
func read(d *document) *Config {
	r := &reader{doc: d, json: gjson.ParseBytes(d.src)}
	c := &Config{Source: d.file}
	c.Transport = r.text("transport")
	c.Placement = r.text("placement")
	c.Ports = r.ports(c)
	c.EALArgs = ealArgs(r.json.Get("eal_args"))
	r.container("eal_args")
	r.socket(c)
	c.RecorderDir = r.text("recorder_dir")
	c.StatsInterval = r.duration("stats_timer_interval", time.Millisecond)
	c.DeathTimeout = r.duration("death_timeout_ms", time.Millisecond)
	c.Workers = r.workers(c.Ports)
	c.AutoWorkers = r.json.Get("workers").Type == gjson.String
	c.Polling = r.polling()
	c.Limits = r.limits()
	c.Responder = r.text("responder")
	c.ResponderAllow = r.prefixes("responder_allow")
	c.MetricsAddress = r.text("metrics_address")
	c.LogLevel = r.text("log_level")
	c.LogFormat = r.text("log_format")
	c.Settings = r.settings
	return c
}

// value finds a setting in the document, or its default in the schema, and
// notes which. A setting without a constant default gives a Result that
// doesn't exist, and notes nothing.
func (r *reader) value(path string) gjson.Result {
	if v := r.json.Get(gjsonPath(path)); v.Exists() {
		r.note(path, v.Raw, r.origin(path))
		return v
	}
	p, ok := schema.Lookup(schema.Generic(path))
	if !ok {
		panic("config: the schema has no " + path) // a test reads every path
	}
	if p.Default == "null" {
		return gjson.Result{}
	}
	r.note(path, p.Default, "default")
	return gjson.Parse(p.Default)
}

func (r *reader) origin(path string) string {
	if r.doc.file == defaultSource {
		return defaultSource // which has no lines a user could look at
	}
	return fmt.Sprintf("%s:%d", r.doc.file, r.doc.line(path))
}

func (r *reader) note(path, value, origin string) {
	r.settings = append(r.settings, Setting{Path: path, Value: compact(value), Origin: origin})
}

// amend corrects the value noted last to what came of it: a file's
// "10.2.0.100" is 10.2.0.100/24 in effect.
func (r *reader) amend(value string) { r.settings[len(r.settings)-1].Value = value }

func compact(value string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(value)); err != nil {
		return value
	}
	return b.String()
}

// gjsonPath turns "ports[0].mtu" into "ports.0.mtu". Names of the schema have
// no character that gjson gives a meaning, but for the first of "$schema",
// which is never read.
func gjsonPath(path string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(path)
}

func (r *reader) text(path string) string { return r.value(path).String() }

// number reads an integer, which a file may also write as 512.0 or 5e2.
func (r *reader) number(path string) int {
	n := int(r.value(path).Int())
	r.amend(strconv.Itoa(n))
	return n
}

func (r *reader) duration(path string, unit time.Duration) time.Duration {
	return time.Duration(r.number(path)) * unit
}

// textOr reads a setting whose default is computed, not constant.
func (r *reader) textOr(path, fallback, origin string) string {
	if v := r.value(path); v.Exists() {
		return v.String()
	}
	r.note(path, quoteJSON(fallback), origin)
	return fallback
}

// container notes a setting that is shown whole.
func (r *reader) container(path string) { r.value(path) }

func (r *reader) ports(c *Config) []Port {
	ports := make([]Port, len(r.json.Get("ports").Array()))
	for i := range ports {
		ports[i] = r.port(indexPath("ports", i), ports[:i], c)
	}
	return ports
}

func (r *reader) port(at string, before []Port, c *Config) Port {
	device := r.text(at + ".device")
	of, number := firstPort(device, before)
	p := Port{
		Protocol:        r.text(at + ".protocol"),
		Name:            r.name(at, device, number, len(before)),
		Device:          device,
		Number:          number,
		PCIAddress:      r.normal(at+".pci_address", fullPCI),
		Vdev:            r.text(at + ".vdev"),
		Address:         r.address(at),
		Gateway:         r.addr(at + ".gateway"),
		MTU:             r.mtu(at+".mtu", at+".vdev"),
		RaiseMTU:        r.text(at+".interface_mtu") == "raise",
		VLAN:            r.number(at + ".vlan"),
		KernelInterface: r.text(at + ".kernel_interface"),
		MAC:             r.normal(at+".mac_address", strings.ToLower),
		Allow:           r.prefixes(at + ".allow"),
		CRC:             r.text(at + ".crc"),
		MaxQP:           r.maxQP(at+".max_qp", of),
		RxDesc:          r.number(at + ".rx_desc_count"),
		TxDesc:          r.number(at + ".tx_desc_count"),
		RxBurst:         r.number(at + ".rx_burst_size"),
		TxBurst:         r.number(at + ".tx_burst_size"),
	}
	if device == "" {
		p.Device = p.Name
	}
	transport, from := p.fittingTransport(at)
	switch {
	case of != nil:
		transport, from = of.Transport, at+".device"
	case c.Transport != "" && !p.RoCE():
		transport, from = c.Transport, "transport"
	}
	p.Transport = r.textOr(at+".transport", transport, from)
	p.Placement = r.textOr(at+".placement", c.Placement, "placement")
	return p
}

// firstPort is that of the device whose next port is read, nil where it is that itself; number is the
// next port's.
func firstPort(device string, before []Port) (of *Port, number int) {
	n := len(before)
	if device == "" || n == 0 || before[n-1].Device != device {
		return nil, 1
	}
	number = before[n-1].Number + 1
	return &before[n+1-number], number
}

// name of port i, which of one of a named device is not a setting.
func (r *reader) name(at, device string, number, i int) string {
	if device != "" {
		return fmt.Sprintf("%s/%d", device, number)
	}
	return r.textOr(at+".name", fmt.Sprintf("urdma%d", i), "default")
}

// fittingTransport is the transport under which most programs run on such a port
// (docs/VERBS.md, "Which transport"), and the setting of the port at path at that decides.
func (p *Port) fittingTransport(at string) (transport, from string) {
	v, _ := ParseVdev(p.Vdev)
	_, lid := personality.UnicastLID(p.Address.Addr())
	switch {
	case p.RoCE():
		return personality.RoCE, at + ".protocol"
	case v.TCP: // its peers may be RNICs, and perftest wants both ends alike
		return personality.IWARP, at + ".vdev"
	case lid && !p.Gateway.IsValid() && (v.Kind == VdevLoopback || v.Kind == VdevMemif): // no peer beyond the network, for which a LID can't stand
		return personality.IB, at + ".vdev"
	default:
		return personality.RoCE, at + ".vdev"
	}
}

// A port without a network interface below it has an Ethernet's MTU, if DPDK
// drives it, which may be a NIC. A memif has no wire: there what a packet costs
// counts, not its length, until the buffers of a burst outgrow the cache
// (bench/suite, "memif with its default MTU").
const (
	defaultMTU      = 1500
	defaultMemifMTU = 9000
)

// mtu is 0 for that of the network interface, which nobody has asked yet.
func (r *reader) mtu(path, vdev string) int {
	if r.json.Get(gjsonPath(path)).Exists() {
		return r.number(path)
	}
	mtu := defaultMTU
	switch v, err := ParseVdev(r.json.Get(gjsonPath(vdev)).String()); {
	case err != nil: // refused elsewhere
	case v.OnInterface() || v.Kind == VdevUDP:
		return 0
	case v.Kind == VdevMemif:
		mtu = defaultMemifMTU
	}
	r.note(path, strconv.Itoa(mtu), "default")
	return mtu
}

// normal reads a text that has several forms in a file and one in effect.
func (r *reader) normal(path string, form func(string) string) string {
	text := r.text(path)
	if text == "" {
		return ""
	}
	r.amend(quoteJSON(form(text)))
	return form(text)
}

func (r *reader) prefix(path string) netip.Prefix {
	p := parsePrefix(r.text(path))
	if p.IsValid() {
		r.amend(quoteJSON(p.String()))
	}
	return p
}

// address is that of a port, of either family.
func (r *reader) address(at string) netip.Prefix {
	four, six := r.prefix(at+".ipv4_address"), r.prefix(at+".ipv6_address")
	if six.IsValid() && !four.IsValid() {
		return six
	}
	return four
}

// prefixes gives the zero Prefix for each element that is none.
func (r *reader) prefixes(path string) (list []netip.Prefix) {
	for _, v := range r.value(path).Array() {
		p, _ := netip.ParsePrefix(v.String())
		list = append(list, p)
	}
	return list
}

// addr gives the zero Addr for what is absent or no address.
func (r *reader) addr(path string) netip.Addr {
	a, _ := netip.ParseAddr(r.text(path))
	return a
}

// maxQP takes 0 for the default, as the C urdma did. A device has its first port's.
func (r *reader) maxQP(path string, of *Port) int {
	if of != nil && !r.json.Get(gjsonPath(path)).Exists() {
		r.note(path, strconv.Itoa(of.MaxQP), strings.TrimSuffix(path, "max_qp")+"device")
		return of.MaxQP
	}
	if n := r.number(path); n > 0 {
		return n
	}
	p, _ := schema.Lookup(schema.Generic(path))
	r.amend(p.Default)
	n, _ := strconv.Atoi(p.Default)
	return n
}

// The network of an address that names none.
const (
	defaultPrefixBits  = 24
	defaultPrefixBits6 = 64
)

// parsePrefix returns the zero Prefix for what is no address.
func parsePrefix(text string) netip.Prefix {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p
	}
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil:
	case a.Is4():
		return netip.PrefixFrom(a, defaultPrefixBits)
	default:
		return netip.PrefixFrom(a, defaultPrefixBits6)
	}
	return netip.Prefix{}
}

// fullPCI gives a PCI address its domain, in lower case, as DPDK prints it.
func fullPCI(text string) string {
	if strings.Count(text, ":") == 1 {
		text = "0000:" + text
	}
	return strings.ToLower(text)
}

func (r *reader) socket(c *Config) {
	path, origin := defaultSocket(systemPlaces())
	c.Socket = r.textOr("socket", path, origin)
	c.SocketGroup = r.text("socket_group")
	c.SysfsDir = r.textOr("sysfs_dir", sysfsBeside(c.Socket), "socket")
	c.Fabric = r.text("fabric")
	for _, v := range r.value("fabric_hosts").Array() {
		a, _ := netip.ParseAddr(v.String())
		c.FabricHosts = append(c.FabricHosts, a)
	}
}

func (r *reader) workers(ports []Port) []Worker {
	list := r.json.Get("workers")
	if list.Type == gjson.String {
		workers := slices.Repeat([]Worker{{Core: -1}}, autoWorkers(processors, ports))
		for i := range workers {
			r.note(indexPath("workers", i)+".core", "-1", r.origin("workers"))
		}
		return workers
	}
	if !list.Exists() {
		p, _ := schema.Lookup("workers")
		list = gjson.Parse(p.Default)
	}
	workers := make([]Worker, len(list.Array()))
	for i := range workers {
		workers[i].Core = r.number(indexPath("workers", i) + ".core")
	}
	return workers
}

// processors are those that this process may use, by its affinity and its cgroup's quota, as
// Go's runtime has found them before anybody changed its GOMAXPROCS.
var processors = runtime.GOMAXPROCS(0)

// maxWorkers is the schema's.
const maxWorkers = 8

// autoWorkers is how many workers "auto" is at most: each busy one has programs that poll besides.
// Ports that are asked by one worker, for all, gain little by others. A memif has a queue for each;
// whether a device of DPDK has one is known once it is open.
func autoWorkers(processors int, ports []Port) int {
	wire := func(p Port) bool {
		v, _ := ParseVdev(p.Vdev)
		return v.Kind != VdevLoopback
	}
	if !slices.ContainsFunc(ports, wire) {
		return 1
	}
	return min(max(processors/4, 1), maxWorkers)
}

func (r *reader) polling() Polling {
	return Polling{
		Spin:     r.duration("polling.spin_us", time.Microsecond),
		Yield:    r.duration("polling.yield_us", time.Microsecond),
		MaxSleep: r.duration("polling.max_sleep_us", time.Microsecond),
		Slice:    r.duration("polling.slice_us", time.Microsecond),
		Nice:     r.number("polling.nice"),
	}
}

func (r *reader) limits() Limits {
	return Limits{
		QueuePairs:          r.number("limits.queue_pairs"),
		MemoryRegions:       r.number("limits.memory_regions"),
		RegisteredBytes:     uint64(r.number("limits.registered_bytes")),
		CompletionQueues:    r.number("limits.completion_queues"),
		SharedReceiveQueues: r.number("limits.shared_receive_queues"),
		ProtectionDomains:   r.number("limits.protection_domains"),
		QueueBytes:          uint64(r.number("limits.queue_bytes")),
		Contexts:            r.number("limits.contexts"),
		CompletionChannels:  r.number("limits.completion_channels"),
		EventChannels:       r.number("limits.event_channels"),
		CMIDs:               r.number("limits.cm_ids"),
		Files:               r.number("limits.files"),
		Maps:                r.number("limits.mappings"),
		Clients:             r.number("limits.clients"),
		UserShare:           r.number("limits.user_share"),
	}
}
