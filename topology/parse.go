package topology

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
)

var (
	guidLine = regexp.MustCompile(`^(vendid|devid|sysimgguid|switchguid|caguid)=(?:0x)?([0-9a-fA-F]{1,16})(?:` +
		`\([0-9a-fA-F]+\))?$`)
	nodeLine = regexp.MustCompile(`^(Switch|Ca|Hca)\s+(\d{1,3})\s+"([^"]+)"\s*(?:#\s*(.*))?$`)
	portLine = regexp.MustCompile(`^\[(\d{1,3})\](?:\(([0-9a-fA-F]{1,16})\))?\s+"([^"]+)"\[(\d{1,3})\]` +
		`(?:\([0-9a-fA-F]{1,16}\))?\s*(?:#\s*(.*))?$`)

	quoted    = regexp.MustCompile(`^"(.*)"(.*)$`)
	lidOf     = regexp.MustCompile(`\blid (\d{1,5})\b`)
	guidOfID  = regexp.MustCompile(`^[SH]-([0-9a-fA-F]{16})$`)
	expecting = `expected Switch or Ca, a number of ports and "id", such as: Switch 36 "leaf1"  # "name"; a link, such ` +
		`as: [1] "host1"[1]; or switchguid= or caguid= and a number`
)

// parser is the state after the lines read so far.
type parser struct {
	t    Topology
	line int
	node *Node
	guid uint64 // GUID for the next node
	byID map[string]*Node
	to   map[*Port]string // the ID of the other end, which may follow later in the file
}

// Parse reads text; errors name file and the line. A link that is listed at one end only is accepted.
func Parse(file string, text []byte) (*Topology, error) {
	p := &parser{t: Topology{File: file}, byID: map[string]*Node{}, to: map[*Port]string{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		p.line++
		if err := p.take(strings.TrimSpace(lines.Text())); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, p.line, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, p.line+1, err)
	}
	if len(p.t.Nodes) == 0 {
		return nil, fmt.Errorf("%s: no nodes; %s", file, expecting)
	}
	if err := p.join(); err != nil {
		return nil, fmt.Errorf("%s:%w", file, err)
	}
	return &p.t, nil
}

func (p *parser) take(line string) error {
	if line == "" || line[0] == '#' {
		return nil
	}
	if m := guidLine.FindStringSubmatch(line); m != nil {
		if strings.HasSuffix(m[1], "guid") && m[1] != "sysimgguid" {
			p.guid, _ = strconv.ParseUint(m[2], 16, 64) // the expression matches digits only
		}
		return nil
	}
	if m := nodeLine.FindStringSubmatch(line); m != nil {
		return p.takeNode(m[1] == "Switch", m[2], m[3], m[4])
	}
	if m := portLine.FindStringSubmatch(line); m != nil {
		return p.takePort(m)
	}
	return fmt.Errorf("found %.80q, %s", line, expecting)
}

func (p *parser) takeNode(sw bool, ports, id, comment string) error {
	n := &Node{Switch: sw, ID: id, GUID: p.guid, Name: id, Line: p.line}
	p.guid = 0
	count, _ := strconv.Atoi(ports)
	switch {
	case p.byID[id] != nil:
		return fmt.Errorf("found a second node %q, the first is that of line %d", id, p.byID[id].Line)
	case count < 1 || count > MaxPorts:
		return fmt.Errorf("found %d ports of %q, expected 1 to %d", count, id, MaxPorts)
	case len(p.t.Nodes) == MaxNodes:
		return fmt.Errorf("found a node more than %d, which is the most", MaxNodes)
	}
	n.Ports = make([]Port, count+1)
	if m := quoted.FindStringSubmatch(comment); m != nil {
		n.Name = m[1]
		if l := lidOf.FindStringSubmatch(m[2]); sw && l != nil {
			n.LID = lid(l[1])
		}
	}
	if len(n.Name) > maxName {
		return fmt.Errorf("found a name of %d bytes, expected %d at most", len(n.Name), maxName)
	}
	if n.GUID == 0 {
		n.GUID = guidFor(id)
	}
	p.node, p.byID[id], p.t.Nodes = n, n, append(p.t.Nodes, n)
	return nil
}

// lid parses a LID; 0, any, if it is not valid.
func lid(digits string) uint16 {
	n, _ := strconv.ParseUint(digits, 10, 16)
	return uint16(n)
}

// guidFor is the GUID of a node without a GUID line: the GUID in its ID, as ibnetdiscover writes IDs, or a locally
// administered one made from the ID.
func guidFor(id string) uint64 {
	if m := guidOfID.FindStringSubmatch(id); m != nil {
		if n, _ := strconv.ParseUint(m[1], 16, 64); n != 0 {
			return n
		}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum64()&^(0xff<<56|0xff) | 2<<56
}

func (p *parser) takePort(m []string) error {
	num, _ := strconv.Atoi(m[1])
	peer, _ := strconv.Atoi(m[4])
	switch {
	case p.node == nil:
		return errors.New("found a link before any node")
	case num < 1 || num >= len(p.node.Ports):
		return fmt.Errorf("found port %d of %q, expected 1 to %d", num, p.node.ID, len(p.node.Ports)-1)
	case p.node.Ports[num].line != 0:
		return fmt.Errorf("found port %d of %q a second time, the first is line %d", num, p.node.ID, p.node.Ports[num].line)
	}
	at := &p.node.Ports[num]
	at.line, at.PeerPort, p.to[at] = p.line, peer, m[3]
	if !p.node.Switch {
		at.GUID, _ = strconv.ParseUint(m[2], 16, 64)
		if l := lidOf.FindStringSubmatch(m[5]); strings.HasPrefix(m[5], "lid ") {
			at.LID = lid(l[1])
		}
	}
	return nil
}

// join makes the links that both ends describe, and gives GUIDs to ports that have none.
func (p *parser) join() error {
	guids := map[uint64]int{}
	unique := func(guid uint64, line int) error {
		if was := guids[guid]; was != 0 {
			return fmt.Errorf("%d: found GUID %#x a second time, the first is that of line %d", line, guid, was)
		}
		guids[guid] = line
		return nil
	}
	for _, n := range p.t.Nodes {
		if err := unique(n.GUID, n.Line); err != nil {
			return err
		}
		for num := 1; num < len(n.Ports); num++ {
			if err := p.joinPort(n, num); err != nil {
				return err
			}
		}
	}
	for _, n := range p.t.Nodes {
		for num := 1; num < len(n.Ports) && !n.Switch; num++ {
			at := &n.Ports[num]
			if at.GUID == 0 {
				at.GUID = n.GUID + uint64(num-1)
			}
			if at.GUID == n.GUID { // the first port may share its node's GUID
				continue
			}
			if err := unique(at.GUID, max(at.line, n.Line)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *parser) joinPort(n *Node, num int) error {
	at := &n.Ports[num]
	id, named := p.to[at]
	if !named {
		return nil
	}
	peer := p.byID[id]
	switch {
	case peer == nil:
		return fmt.Errorf("%d: found a link to %q, expected a node of this file", at.line, id)
	case at.PeerPort < 1 || at.PeerPort >= len(peer.Ports):
		return fmt.Errorf("%d: found a link to port %d of %q, expected 1 to %d", at.line, at.PeerPort, id, len(peer.Ports)-1)
	case peer == n:
		return fmt.Errorf("%d: found a link from %q to itself", at.line, id)
	}
	other := &peer.Ports[at.PeerPort]
	if other.Peer != nil && (other.Peer != n || other.PeerPort != num) ||
		other.line != 0 && (p.to[other] != n.ID || other.PeerPort != num) {
		return fmt.Errorf("%d: found a link to port %d of %q, which line %d has another link for", at.line, at.PeerPort, id,
			max(other.line, other.Peer.lineOf(other.PeerPort)))
	}
	n.plug(num, peer, at.PeerPort)
	return nil
}

func (n *Node) lineOf(num int) int {
	if n == nil {
		return 0
	}
	return n.Ports[num].line
}
