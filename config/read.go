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

// reader reads values with gjson from a document that passed the schema, and defaults from the schema for all that
// the document leaves out.
type reader struct {
	doc      *document
	json     gjson.Result
	settings []Setting
}

// read builds the effective configuration. It trusts types and ranges. A value that it cannot parse (an address of
// 999.0.0.1) stays zero, and checkRules refuses it.
func read(d *document) *Config {
	r := &reader{doc: d, json: gjson.ParseBytes(d.src)}
	c := &Config{Source: d.file}
	c.Profile = r.text("profile")
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

// value finds a setting in the document, or its default in the schema, and records which. For a setting without a
// constant default it returns a Result that doesn't exist, and records nothing.
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
		return defaultSource // it has no lines that a user could look at
	}
	return fmt.Sprintf("%s:%d", r.doc.file, r.doc.line(path))
}

func (r *reader) note(path, value, origin string) {
	r.settings = append(r.settings, Setting{Path: path, Value: compact(value), Origin: origin})
}

// amend replaces the last recorded value by its effective form: a file's "10.2.0.100" becomes 10.2.0.100/24.
func (r *reader) amend(value string) { r.settings[len(r.settings)-1].Value = value }

func compact(value string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(value)); err != nil {
		return value
	}
	return b.String()
}

// gjsonPath turns "ports[0].mtu" into "ports.0.mtu". No name in the schema has a character with a meaning for
// gjson, except "$schema", which is never read.
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

// textOr reads a setting whose default is computed.
func (r *reader) textOr(path, fallback, origin string) string {
	if v := r.value(path); v.Exists() {
		return v.String()
	}
	r.note(path, quoteJSON(fallback), origin)
	return fallback
}

// container records a setting that is shown as a whole.
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
		RawPackets:      r.text(at + ".raw_packets"),
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
	case c.Profile != "":
		transport, from = personality.ProfileNamed(c.Profile).Transport, "profile"
	case c.Transport != "" && !p.RoCE():
		transport, from = c.Transport, "transport"
	}
	p.Transport = r.textOr(at+".transport", transport, from)
	p.Placement = r.textOr(at+".placement", c.Placement, "placement")
	return p
}

// firstPort returns the first port of a device, nil if the next port is itself the first, and the number of the
// next port.
func firstPort(device string, before []Port) (of *Port, number int) {
	n := len(before)
	if device == "" || n == 0 || before[n-1].Device != device {
		return nil, 1
	}
	number = before[n-1].Number + 1
	return &before[n+1-number], number
}

// name is the name of port i. The port of a named device has no setting for it.
func (r *reader) name(at, device string, number, i int) string {
	if device != "" {
		return fmt.Sprintf("%s/%d", device, number)
	}
	return r.textOr(at+".name", fmt.Sprintf("urdma%d", i), "default")
}

// fittingTransport returns the transport under which most programs run on such a port (docs/VERBS.md, "Which
// transport"), and the setting that decides it. at is the path of the port.
func (p *Port) fittingTransport(at string) (transport, from string) {
	v, _ := ParseVdev(p.Vdev)
	_, lid := personality.UnicastLID(p.Address.Addr())
	switch {
	case p.RoCE():
		return personality.RoCE, at + ".protocol"
	case v.TCP: // peers may be RNICs, and perftest wants the same on both ends
		return personality.IWARP, at + ".vdev"
	// without a gateway no peer is outside the network, where LIDs have no meaning
	case lid && !p.Gateway.IsValid() && (v.Kind == VdevLoopback || v.Kind == VdevMemif):
		return personality.IB, at + ".vdev"
	default:
		return personality.RoCE, at + ".vdev"
	}
}

// A port without a network interface under it, if DPDK drives it, may be a NIC and has an Ethernet's MTU. A memif
// or loopback has no wire: its cost is per packet, not per byte, until the buffers of a burst outgrow the cache
// (bench/suite, "memif with its default MTU"). Datagrams (UD) can then have 4,096 bytes, as on hardware.
const (
	defaultMTU       = 1500
	defaultWithinMTU = 9000
)

// mtu returns 0 for the MTU of the network interface, which is not known yet.
func (r *reader) mtu(path, vdev string) int {
	if r.json.Get(gjsonPath(path)).Exists() {
		return r.number(path)
	}
	mtu := defaultMTU
	switch v, err := ParseVdev(r.json.Get(gjsonPath(vdev)).String()); {
	case err != nil: // refused elsewhere
	case v.OnInterface() || v.Kind == VdevUDP:
		return 0
	case v.Kind == VdevMemif, v.Kind == VdevLoopback:
		mtu = defaultWithinMTU
	}
	r.note(path, strconv.Itoa(mtu), "default")
	return mtu
}

// normal reads a text that has several forms in a file and a single one in effect.
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

// address is the address of a port, IPv4 or IPv6.
func (r *reader) address(at string) netip.Prefix {
	four, six := r.prefix(at+".ipv4_address"), r.prefix(at+".ipv6_address")
	if six.IsValid() && !four.IsValid() {
		return six
	}
	return four
}

// prefixes has the zero Prefix for each element that cannot be parsed.
func (r *reader) prefixes(path string) (list []netip.Prefix) {
	for _, v := range r.value(path).Array() {
		p, _ := netip.ParsePrefix(v.String())
		list = append(list, p)
	}
	return list
}

// addr is the zero Addr if the value is absent or cannot be parsed.
func (r *reader) addr(path string) netip.Addr {
	a, _ := netip.ParseAddr(r.text(path))
	return a
}

// maxQP takes 0 for the default, as the C urdma did. All ports of a device have the value of its first.
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

// The network of an address without a prefix length.
const (
	defaultPrefixBits  = 24
	defaultPrefixBits6 = 64
)

// parsePrefix returns the zero Prefix if text cannot be parsed.
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

// fullPCI adds the domain to a PCI address and turns it to lower case, as DPDK prints it.
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

// processors is the number of processors that this process may use, by its affinity and its cgroup's quota. Go's
// runtime determines it at start-up; it is read before anybody changes GOMAXPROCS.
var processors = runtime.GOMAXPROCS(0)

// maxWorkers is the schema's maximum.
const maxWorkers = 8

// autoWorkers is the upper bound on the number of workers for "auto". Each busy worker has polling programs, which
// need processors, too. More workers gain little for ports that a single worker polls for all. A memif has a queue
// for each worker; a DPDK device's queues are known only after it is opened.
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
