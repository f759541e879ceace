package model

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"
)

// patience is the longest time for an interpreter's answer.
const patience = 20 * time.Second

// Judge runs programs on two interpreters and compares the results with the model.
type Judge struct {
	// Patience is the longest time until calls have the results that the model expects.
	Patience time.Duration
	// Stream: the messages of a side, answers included, are one stream, as with iWARP.
	Stream bool
	// RXE: the provider is Linux's rxe. Errors of queue pairs raise no events, and a message may have to wait for
	// a receive before its key is refused.
	RXE bool
	// Overtake: datagrams of one queue pair may overtake each other.
	Overtake bool
	// Undecided counts programs that were not judged to their end, because the model has too many states for them.
	Undecided int

	sides [2]*interpreter
}

// interpreter is a running testdata/interpreter.c.
type interpreter struct {
	conn   net.Conn
	r      *bufio.Reader
	base   uint64 // address of the memory
	gid    [2]uint64
	lid    int
	global int
	qpn    [2]uint32
	peer   *interpreter         // of datagrams; else nil
	rxe    bool                 // its provider is rxe
	keys   map[string][2]uint32 // lkey and rkey by name
	bound  map[Key]uint32       // of windows of type 1, as ibv_bind_mw returned them; else nil
	queues [2]uint32            // numbers of the shared queues, with XRC
	state  [2]int               // of the queue pairs, at the last poll
	memory []byte
	seen   [streams]string
}

// NewJudge accepts both interpreters. start, which is called twice with the path of a socket, starts them.
func NewJudge(directory string, start func(side int, socket string) error) (*Judge, error) {
	j := &Judge{Patience: patience}
	for side := range j.sides {
		socket := fmt.Sprintf("%s/interpreter%d", directory, side)
		l, err := net.Listen("unix", socket)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		if err := start(side, socket); err != nil {
			return nil, err
		}
		_ = l.(*net.UnixListener).SetDeadline(time.Now().Add(patience))
		conn, err := l.Accept()
		if err != nil {
			return nil, err
		}
		j.sides[side] = &interpreter{conn: conn, r: bufio.NewReaderSize(conn, 1<<17), memory: make([]byte, memoryBytes)}
	}
	return j, nil
}

// Close ends both interpreters.
func (j *Judge) Close() {
	for _, i := range j.sides {
		_ = i.conn.Close() // they end at the end of their input
	}
}

func (i *interpreter) ask(format string, args ...any) (string, error) {
	_ = i.conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(i.conn, format+"\n", args...); err != nil {
		return "", err
	}
	answer, err := i.r.ReadString('\n')
	return strings.TrimSuffix(answer, "\n"), err
}

func (i *interpreter) errno(command string) (syscall.Errno, error) {
	answer, err := i.ask("%s", command)
	if err != nil {
		return 0, err
	}
	var n int
	_, err = fmt.Sscan(answer, &n)
	return syscall.Errno(n), err
}

// HasXRC reports whether the provider's device has XRC.
func (j *Judge) HasXRC() bool {
	has, err := j.sides[0].errno("has_xrc")
	return err == nil && has != 0
}

func (i *interpreter) setup(p *Program, side int) error {
	const rc, ud, xrcSend, xrcReceive = 2, 4, 9, 10 // enum ibv_qp_type
	types := [2]int{rc, rc}
	for qp := range types {
		switch {
		case p.UD:
			types[qp] = ud
		case p.XRC && p.sends(side, qp):
			types[qp] = xrcSend
		case p.XRC:
			types[qp] = xrcReceive
		}
	}
	windows := 0 // enum ibv_mw_type
	i.bound = nil
	if p.Windows {
		windows = 2
	}
	if p.Windows && p.Type1 {
		windows, i.bound = 1, map[Key]uint32{}
	}
	answer, err := i.ask("setup %d %d %d %d %d %d %d %d %d %d", bit(p.Shared), outBytes, inBytes, receiveBytes, depth,
		bit(p.SRQ), bit(p.SigAll), windows, types[0], types[1])
	if err != nil {
		return err
	}
	r := strings.NewReader(answer)
	if _, err := fmt.Fscan(r, &i.base, &i.lid, &i.global, &i.gid[0], &i.gid[1], &i.qpn[0], &i.qpn[1]); err != nil {
		return fmt.Errorf("%w in %s", err, answer)
	}
	i.keys = map[string][2]uint32{"nonsense": {0x12345, 0x12345}}
	for _, region := range regions {
		var l, r2 uint32
		fmt.Fscan(r, &l, &r2) // as many as the interpreter prints
		i.keys[region.name] = [2]uint32{l, r2}
	}
	for _, w := range windowNames {
		var key uint32
		fmt.Fscan(r, &key) // likewise
		i.keys[w] = [2]uint32{key, key}
	}
	i.queues = [2]uint32{}
	fmt.Fscan(r, &i.queues[0], &i.queues[1]) // likewise
	i.seen, i.state = [streams]string{}, [2]int{}
	return nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rkey returns the value of a key for the peer.
func (i *interpreter) rkey(k Key) uint32 {
	n := i.keys[k.Of][1]
	if i.bound != nil && k.Variant > 0 {
		n, bound := i.bound[k]
		if !bound { // the program has no such bind any more
			return i.keys["nonsense"][1]
		}
		return n
	}
	return n&^0xff | (n+uint32(k.Variant))&0xff
}

// poll reads the interpreters' reports.
func (i *interpreter) poll() error {
	for first := true; ; first = false {
		command := "poll"
		line, err := "", error(nil)
		if first {
			line, err = i.ask("%s", command)
		} else {
			line, err = i.r.ReadString('\n')
			line = strings.TrimSuffix(line, "\n")
		}
		if err != nil {
			return err
		}
		if line == "." {
			_, err := io.ReadFull(i.r, i.memory)
			return err
		}
		if err := i.heard(line); err != nil {
			return err
		}
	}
}

func (i *interpreter) heard(line string) error {
	var what string
	var a [9]int
	n, _ := fmt.Sscan(line, &what, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &a[6], &a[7], &a[8]) // fewer are fine
	const communicationEstablished, drained = 4, 5
	switch {
	case what == "completion" && n == 10:
		i.complete(a[0], uint32(a[1]), a[2:])
	case what == "event" && a[1] == communicationEstablished: // may be raised in RTR, or not
	case what == "event" && a[1] == drained && i.rxe: // nobody asked for it
	case what == "event" && a[0] < 0:
		i.seen[ofShared-1-a[0]] += fmt.Sprintf("event %d\n", a[1])
	case what == "event" && a[1] == eventLast:
		i.seen[ofLast+a[0]] += fmt.Sprintf("event %d\n", a[1])
	case what == "event" && a[0] < 2:
		i.seen[ofErrors+a[0]] += fmt.Sprintf("event %d\n", a[1])
	case what == "state":
		i.state[a[0]] = a[1]
	default:
		return fmt.Errorf("the interpreter writes %q", line)
	}
	return nil
}

// firstReceive is the lowest ID of a receive; IDs of sends are lower.
const firstReceive = 1000

// complete is a completion: wr_id, status, opcode, byte_len, wc_flags, imm_data, src_qp.
func (i *interpreter) complete(cq int, qpn uint32, c []int) {
	qp, stream := 0, ofSends
	if qpn == i.qpn[1] {
		qp = 1
	}
	if c[0] >= firstReceive {
		stream = ofReceives
	}
	if i.peer == nil { // it has a meaning for datagrams only (ibv_poll_cq(3)), and rxe sets it always
		c[4] &^= withHeader
	}
	text := fmt.Sprintf("%d %d", c[0], c[2])
	switch {
	case c[1] != success:
		text = fmt.Sprintf("%d status %d", c[0], c[1])
	case stream == ofReceives:
		text += fmt.Sprintf(" %d", c[3])
		if c[4] != 0 {
			text += fmt.Sprintf(" flags %d", c[4])
		}
		if c[4]&withImm != 0 {
			text += fmt.Sprintf(" %d", c[5])
		}
		if i.peer != nil {
			text += fmt.Sprint(" from ", slices.Index(i.peer.qpn[:], uint32(c[6])))
		}
	}
	if own := stream == ofReceives && i.queues[0] != 0; own != (cq != 0) {
		text += fmt.Sprint(" on completion queue ", cq)
	}
	if cq == 2 {
		stream = ofSecond
	}
	i.seen[stream+qp] += text + "\n"
}

// Failure is a program whose results the model does not allow.
type Failure struct {
	Program Program
	Text    string
}

func (f *Failure) Error() string { return f.Text + "\n" + f.Program.String() }

// Run runs a program and returns nil, a *Failure, or an error of the interpreters. It also returns nil if it can't
// decide.
func (j *Judge) Run(p Program) error {
	for side, i := range j.sides {
		i.rxe = j.RXE
		if i.peer = nil; p.UD {
			i.peer = j.sides[1-side]
		}
		if err := i.setup(&p, side); err != nil {
			return err
		}
	}
	states := []state{j.newState(&p)}
	for first := 0; first < len(p.Calls); {
		last := first
		for p.followedAtOnce(last) {
			last++
		}
		var errnos []syscall.Errno
		for _, c := range p.Calls[first : last+1] {
			errno, err := j.call(&p, &states[0], c)
			if err != nil {
				return err
			}
			errnos = append(errnos, errno)
		}
		after, ok := explore(states, p.Calls[first:last+1], errnos)
		if !ok {
			j.Undecided++
			break
		}
		remaining, text, err := j.await(after)
		if err != nil {
			return err
		}
		if text != "" {
			j.end()
			p.Calls = p.Calls[:last+1]
			return &Failure{p, fmt.Sprintf("calls %d to %d return %d:\n%s", first+1, last+1, errnos, text)}
		}
		for i := range remaining {
			remaining[i].age()
		}
		states, first = remaining, last+1
	}
	if err := j.end(); err != nil {
		return &Failure{p, err.Error()}
	}
	return nil
}

// end destroys the objects of the program.
func (j *Judge) end() error {
	for side, i := range j.sides {
		if errno, err := i.errno("end"); err != nil || errno != 0 {
			return fmt.Errorf("destroying all objects of side %d: %v, %w", side, errno, err)
		}
	}
	return nil
}

// await polls until the program has reached one of the states, and returns the states that are still possible, or the
// difference.
func (j *Judge) await(states []state) (remaining []state, text string, err error) {
	if len(states) == 0 {
		return nil, "  the model has other return values", nil
	}
	for begin := time.Now(); ; time.Sleep(time.Since(begin) / 50) {
		for _, i := range j.sides {
			if err := i.poll(); err != nil {
				return nil, "", err
			}
		}
		remaining, reached := j.compare(states)
		if reached {
			return remaining, "", nil
		}
		if len(remaining) == 0 || time.Since(begin) > j.Patience {
			return nil, j.describe(states), nil
		}
	}
}

func (j *Judge) compare(states []state) (remaining []state, reached bool) {
	for _, s := range states {
		possible, there := true, true
		for side, i := range j.sides {
			for k, seen := range i.seen {
				possible = possible && strings.HasPrefix(s.seen[side][k], seen)
				there = there && s.seen[side][k] == seen
			}
			for qp := range s.pairs[side] {
				p := &s.pairs[side][qp]
				there = there && (p.destroyed || p.state == i.state[qp])
			}
			there = there && possible && s.memory[side].differs(i.memory) < 0
		}
		if possible {
			remaining = append(remaining, s)
			reached = reached || there
		}
	}
	return remaining, reached
}

var streamNames = [streams]string{"sends of 0", "sends of 1", "receives of 0", "receives of 1", "receives of 0 from shared queue 1",
	"receives of 1 from shared queue 1", "errors of 0", "errors of 1",
	"last receive of 0", "last receive of 1", "events of shared queue 0", "events of shared queue 1"}

// describe returns what was seen, and how each state differs from it.
func (j *Judge) describe(states []state) string {
	var b strings.Builder
	for side, i := range j.sides {
		fmt.Fprintf(&b, "  side %d: states %v\n", side, i.state)
		for k, seen := range i.seen {
			fmt.Fprintf(&b, "    %s: %q\n", streamNames[k], seen)
		}
	}
	for n, s := range states[:min(len(states), 4)] {
		fmt.Fprintf(&b, "  state %d of %d of the model has instead\n", n+1, len(states))
		for side, i := range j.sides {
			for k, seen := range i.seen {
				if s.seen[side][k] != seen {
					fmt.Fprintf(&b, "    side %d, %s: %q\n", side, streamNames[k], s.seen[side][k])
				}
			}
			for qp, p := range s.pairs[side] {
				if !p.destroyed && p.state != i.state[qp] {
					fmt.Fprintf(&b, "    side %d: state %d of queue pair %d\n", side, p.state, qp)
				}
			}
			if at := s.memory[side].differs(i.memory); at >= 0 {
				fmt.Fprintf(&b, "    side %d: byte %d at %d, where there is %d\n", side, s.memory[side].at(at), at, i.memory[at])
			}
		}
	}
	return b.String()
}
