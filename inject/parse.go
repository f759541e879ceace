package inject

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Statement is one statement. Verb says which fields are valid.
type Statement struct {
	Text string // as written
	Verb Verb

	Object string        // Raise: "cq", "qp", "srq", "device", "port", or "link" (the port's link goes down or up)
	ID     string        // which object: a handle, a queue pair number, a port's name
	Event  int64         // Raise: enum ibv_event_type, or EventNone for a completion event
	Rule   Rule          // Apply and After; Raise uses only its PID
	Wait   time.Duration // Pause
	Number uint32        // Clear and Hits: the number of a rule; Clear: 0 stands for all rules

	At     string                  // Errors: a port of the subnet
	Errors [len(PortErrors)]uint64 // Errors: how much to add to each of PortErrors
}

// Verb is the action of a statement.
type Verb uint8

// The verbs.
const (
	Raise  Verb = iota + 1 // raise an event, now
	Apply                  // add a rule
	After                  // wait with the following statements until the rule hits
	Pause                  // wait with the following statements for a time
	Clear                  // remove a rule, or all
	Hits                   // ask how many events a rule has hit; no other statement may come with it
	Errors                 // add errors to the counters of a port of the subnet
)

const (
	// MaxDelay is the longest delay of a call or an event.
	MaxDelay = time.Minute
	maxWait  = 24 * time.Hour
	maxCount = 1 << 40
)

// Parse reads statements, separated by semicolons or line ends; # begins a comment. An error names the statement
// and what is allowed.
func Parse(text string) ([]Statement, error) {
	var all []Statement
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for one := range strings.SplitSeq(line, ";") {
			if one = strings.Join(strings.Fields(one), " "); one == "" {
				continue
			}
			s, err := parse(one)
			if err != nil {
				return nil, fmt.Errorf("line %d, %q: %w", i+1, one, err)
			}
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no statement")
	}
	if len(all) > 1 && slices.ContainsFunc(all, func(s Statement) bool { return s.Verb == Hits }) {
		return nil, errors.New("hits has an answer, so it comes alone")
	}
	return all, nil
}

func parse(text string) (Statement, error) {
	words := strings.Fields(text)
	s := Statement{Text: text, Event: EventNone}
	verb, rest := words[0], words[1:]
	var err error
	switch verb {
	case "cq", "qp", "srq", "device", "port":
		s.Verb, s.Object = Raise, verb
		err = s.raise(rest)
	case "wait":
		s.Verb = Pause
		if len(rest) != 1 {
			return s, errors.New("expected: wait TIME")
		}
		s.Wait, err = duration("wait", rest[0], maxWait)
	case "clear":
		s.Verb = Clear
		err = s.clear(rest)
	case "hits":
		s.Verb = Hits
		if len(rest) != 1 {
			return s, errors.New("expected: hits NUMBER")
		}
		err = s.number(verb, rest[0])
	case "errors":
		s.Verb = Errors
		err = s.errors(rest)
	case "after":
		s.Verb = After
		if len(rest) == 0 {
			return s, errors.New("expected: after send, receive, respond, call, event or cm, and which")
		}
		s.Rule, err = rule(rest[0], rest[1:], false)
	case "wire":
		s.Verb = Apply
		s.Rule, err = wire(rest)
	case "strict":
		s.Verb = Apply
		s.Rule, err = strict(rest)
	default:
		s.Verb = Apply
		s.Rule, err = rule(verb, rest, true)
	}
	return s, err
}

// raise reads the object and the event.
func (s *Statement) raise(words []string) error {
	var plain []string
	for _, w := range words {
		if value, ok := strings.CutPrefix(w, "pid="); ok {
			n, err := whole("pid", value, 1, math.MaxInt32)
			if err != nil {
				return err
			}
			s.Rule.PID = int(n)
			continue
		}
		plain = append(plain, w)
	}
	known := eventsOf[s.Object]
	if len(plain) == 0 || len(plain) > 2 {
		return fmt.Errorf("expected: %s ID [%s]", s.Object, strings.Join(known, "|"))
	}
	s.ID = plain[0]
	event := known[0]
	if len(plain) == 2 {
		event = strings.TrimPrefix(strings.ToUpper(plain[1]), "IBV_EVENT_")
	}
	switch {
	case s.Object == "cq" && event == "EVENT":
		return nil
	case s.Object == "port" && event == "DOWN":
		s.Object, event = "link", "PORT_ERR"
	case s.Object == "port" && event == "UP":
		s.Object, event = "link", "PORT_ACTIVE"
	}
	if !slices.Contains(known, event) {
		return fmt.Errorf("the event is %q, expected one of %s", event, strings.Join(known, ", "))
	}
	s.Event = int64(slices.Index(Events[:], event))
	return nil
}

func (s *Statement) clear(words []string) error {
	if len(words) == 0 || len(words) == 1 && words[0] == "all" {
		return nil
	}
	if len(words) > 1 {
		return errors.New("expected: clear [NUMBER]")
	}
	return s.number("clear", words[0])
}

// number reads the number of a rule.
func (s *Statement) number(verb, word string) error {
	n, err := whole(verb, word, 1, math.MaxUint32)
	s.Number = uint32(n)
	return err
}

// errors reads a port and its new errors.
func (s *Statement) errors(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("expected: errors PORT COUNTER[=N] …, of %s", strings.Join(PortErrors[:], ", "))
	}
	s.At = words[0]
	for _, w := range words[1:] {
		name, value, counted := strings.Cut(w, "=")
		which, err := number(PortErrors[:], "the counter", name, "")
		n := uint64(1)
		if err == nil && counted {
			n, err = whole(name, value, 1, math.MaxUint32)
		}
		if err != nil {
			return err
		}
		s.Errors[which] += n
	}
	return nil
}

var points = map[string]Point{"send": Send, "receive": Receive, "respond": Respond, "call": Call, "event": Notify,
	"cm": CM}

// rule reads a rule. With acts it says what happens and when, otherwise only when.
func rule(point string, words []string, acts bool) (Rule, error) {
	r := Rule{Point: points[point], Code: AnyCode, Seed: 1}
	if r.Point == 0 {
		return r, fmt.Errorf("%q is no statement, expected one of send, receive, respond, call, event, cm, wire, strict, "+
			"cq, qp, srq, device, port, errors, after, wait, clear, hits", point)
	}
	counted := false
	for i, w := range words {
		key, value, ok := strings.Cut(w, "=")
		var err error
		switch {
		case !ok && i == 0:
			err = r.named(w)
		case !ok:
			err = fmt.Errorf("%q: expected KEY=VALUE", w)
		case key == "count":
			counted = true
			err = r.set(key, value)
		default:
			err = r.set(key, value)
		}
		if err != nil {
			return r, err
		}
	}
	if !counted && r.P == 0 {
		r.Count = 1
	}
	return r, r.check(acts)
}

// named reads the word after the point: a function, or reject.
func (r *Rule) named(word string) error {
	switch {
	case r.Point == CM && word == "reject":
		r.Answer, r.Code = Reject, 4
		return nil
	case r.Point != Call:
		return fmt.Errorf("%q: expected KEY=VALUE", word)
	case slices.Contains(posts, word):
		r.Point = Post
	case !slices.Contains(functions, word):
		return fmt.Errorf("%q is no call that reaches urdmad, expected one of %s, %s", word, strings.Join(posts, ", "),
			strings.Join(functions, ", "))
	}
	r.Function = word
	return nil
}

func (r *Rule) set(key, value string) (err error) {
	var n uint64
	switch key {
	case "qp":
		if n, err = strconv.ParseUint(strings.TrimPrefix(value, "0x"), 16, 24); err != nil || n == 0 {
			return fmt.Errorf("qp is %q, expected a hexadecimal number of 1 to ffffff, as urdma show qp prints it", value)
		}
		r.QPN = uint32(n)
	case "pid":
		n, err = whole(key, value, 1, math.MaxInt32)
		r.PID = int(n)
	case "nth":
		r.Nth, err = whole(key, value, 1, maxCount)
	case "bytes":
		r.Bytes, err = size(key, value)
	case "count":
		if value == "all" {
			return nil
		}
		r.Count, err = whole(key, value, 1, maxCount)
	case "seed":
		r.Seed, err = whole(key, value, 0, math.MaxUint64)
	case "p":
		r.P, err = Probability(key, value)
	case "for":
		r.For, err = duration(key, value, maxWait)
	case "delay":
		r.Delay, err = duration(key, value, MaxDelay)
	case "errno":
		r.Errno, err = errnoNamed(value)
	case "status":
		var i int64
		i, err = number(Statuses[:], key, value, "IBV_WC_")
		r.Status = uint32(i)
	case "answer":
		var i int64
		i, err = number(answers, key, value, "")
		r.Answer = Answer(i)
	case "opcode":
		if r.Point == Respond {
			r.Code, err = number(messages, key, value, "IBV_WR_")
		} else {
			r.Code, err = number(opcodes(), key, value, "IBV_WR_")
		}
	case "type":
		r.Code, err = number(cmEvents, key, value, "RDMA_CM_EVENT_")
	default:
		err = fmt.Errorf("%q is no setting, expected one of qp, pid, nth, bytes, count, p, seed, for, opcode, type, "+
			"status, answer, errno, delay", key)
	}
	return err
}

// check refuses combinations without a meaning.
func (r *Rule) check(acts bool) error {
	outcomes := [...]struct {
		name string
		set  bool
		at   []Point
	}{
		{"status", r.Status != 0, []Point{Send, Receive}},
		{"answer", r.Answer != 0, []Point{Respond, CM}},
		{"errno", r.Errno != 0, []Point{Call, Post}},
		{"delay", r.Delay != 0, []Point{Call, Notify, CM}},
	}
	says := false
	for _, o := range outcomes {
		if o.set && !slices.Contains(o.at, r.Point) {
			return fmt.Errorf("%s does not belong to this statement", o.name)
		}
		says = says || o.set
	}
	switch {
	case acts && !says:
		return errors.New("it does not say what happens: send and receive need status=, respond answer=, call errno= or " +
			"delay=, event delay=, cm delay= or reject")
	case !acts && says:
		return errors.New("after says when, not what happens: that stands in the statements behind it")
	case !acts && r.Point == Post:
		return fmt.Errorf("after cannot wait for %s, which does not reach urdmad", r.Function)
	case (r.Point == Call || r.Point == Post) && r.Function == "" && r.Errno != 0:
		return errors.New("which call is to fail? call NAME errno=NAME")
	case r.Code != AnyCode && r.Point != Send && r.Point != Respond && r.Point != CM:
		return errors.New("opcode belongs to send and respond, type to cm")
	case r.Point == Respond && r.Answer != 0 && r.Code != AnyCode && !Answers(r.Answer, r.Code):
		return fmt.Errorf("a responder does not answer %s so", messages[r.Code])
	case r.QPN != 0 && (r.Point == Call || r.Point == Post || r.Point == Notify || r.Point == CM):
		return errors.New("qp belongs to send, receive and respond")
	case r.Bytes != 0 && r.Point != Send:
		return errors.New("bytes belongs to send")
	case r.Bytes != 0 && r.Nth != 0:
		return errors.New("nth and bytes both say which event is the first, expected one of them")
	}
	return nil
}

// Probability reads 0.01 or 1%: above 0, at most 1.
func Probability(key, value string) (float64, error) {
	text, percent := strings.CutSuffix(value, "%")
	p, err := strconv.ParseFloat(text, 64)
	if percent {
		p /= 100
	}
	if err != nil || !(p > 0 && p <= 1) {
		return 0, fmt.Errorf("%s is %q, expected a probability above 0, at most 1, such as 0.01 or 1%%", key, value)
	}
	return p, nil
}

func whole(key, value string, least, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is %q, expected a number of %d to %d", key, value, least, most)
	}
	return n, nil
}

// size reads bytes: 4096, 64KiB, 1MiB, 2GiB.
func size(key, value string) (uint64, error) {
	text, scale := value, uint64(1)
	for suffix, by := range map[string]uint64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if short, ok := strings.CutSuffix(value, suffix); ok {
			text, scale = short, by
		}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 || n > maxCount/scale {
		return 0, fmt.Errorf("%s is %q, expected a number of bytes from 1 to 1024GiB, such as 1MiB", key, value)
	}
	return n * scale, nil
}

func duration(key, value string, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 || d > most {
		return 0, fmt.Errorf("%s is %q, expected a time of up to %v, such as 200ms", key, value, most)
	}
	return d, nil
}
