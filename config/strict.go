package config

import (
	"fmt"
	"unicode/utf8"
)

const (
	// maxBytes bounds a configuration file; real ones have a few KiB.
	maxBytes = 1 << 20
	// maxDepth is far more than the schema's depth, and little stack.
	maxDepth = 32
)

// strict decodes JSON (RFC 8259) and refuses what the later readers would
// take differently from each other: gjson takes the first of two equal keys,
// the schema validator's reader the last, and neither looks past the end.
type strict struct {
	file string
	src  []byte
	pos  int
	line int
}

// decode reads one whole file.
func decode(file string, src []byte) (*document, error) {
	s := &strict{file: file, src: src, line: 1}
	if err := s.checkBytes(); err != nil {
		return nil, err
	}
	root, err := s.value("", 0)
	if err != nil {
		return nil, err
	}
	s.space()
	if s.pos < len(s.src) {
		return nil, s.fail("", s.here()+" after the end of the configuration", "one JSON object, then the end of the file")
	}
	return newDocument(file, src, root), nil
}

// checkBytes refuses a file that isn't UTF-8 before anything is read from it.
func (s *strict) checkBytes() error {
	if len(s.src) > maxBytes {
		return s.fail("", fmt.Sprintf("more than %d bytes", maxBytes), fmt.Sprintf("a file of at most %d bytes", maxBytes))
	}
	if len(s.src) >= 3 && string(s.src[:3]) == "\xef\xbb\xbf" {
		return s.fail("", "a byte order mark (EF BB BF)", "UTF-8 without one (RFC 8259, section 8.1)")
	}
	line := 1
	for i := 0; i < len(s.src); {
		r, n := utf8.DecodeRune(s.src[i:])
		if r == utf8.RuneError && n <= 1 {
			s.line = line
			return s.fail("", fmt.Sprintf("the byte 0x%02x", s.src[i]), "UTF-8")
		}
		if r == '\n' {
			line++
		}
		i += n
	}
	return nil
}

func (s *strict) fail(path, found, allowed string) *Error {
	return &Error{File: s.file, Path: path, Line: s.line, Found: found, Allowed: allowed}
}

// here names the byte or character at the position.
func (s *strict) here() string {
	if s.pos >= len(s.src) {
		return "the end of the file"
	}
	r, _ := utf8.DecodeRune(s.src[s.pos:])
	return fmt.Sprintf("%q", r)
}

func (s *strict) space() {
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case '\n':
			s.line++
		case ' ', '\t', '\r':
		default:
			return
		}
		s.pos++
	}
}

func (s *strict) next(c byte) bool {
	if s.pos < len(s.src) && s.src[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *strict) value(path string, depth int) (*node, error) {
	s.space()
	if depth > maxDepth {
		return nil, s.fail(path, fmt.Sprintf("values nested more than %d deep", maxDepth), "what urdma.json(5) describes")
	}
	start, n := s.pos, &node{line: s.line}
	var err error
	switch c := s.peek(); {
	case c == '{':
		err = s.object(n, path, depth)
	case c == '[':
		err = s.array(n, path, depth)
	case c == '"':
		n.kind = kindString
		n.text, err = s.str(path)
	case c == '-' || c >= '0' && c <= '9':
		n.kind = kindNumber
		err = s.number(path)
	default:
		err = s.literal(n, path)
	}
	if err != nil {
		return nil, err
	}
	n.raw = string(s.src[start:s.pos])
	return n, nil
}

func (s *strict) peek() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

func (s *strict) literal(n *node, path string) error {
	for _, l := range []struct {
		text string
		kind kind
	}{{"true", kindBool}, {"false", kindBool}, {"null", kindNull}} {
		if end := s.pos + len(l.text); end <= len(s.src) && string(s.src[s.pos:end]) == l.text {
			s.pos, n.kind = end, l.kind
			return nil
		}
	}
	return s.fail(path, s.here(), "a JSON value"+s.slip())
}

// slip explains the usual slips of who writes JSON by hand.
func (s *strict) slip() string {
	switch s.peek() {
	case '/', '#':
		return " (JSON has no comments; use a \"$comment\" property)"
	case '}', ']':
		return " (a comma stands only between two elements)"
	}
	return ""
}

func (s *strict) array(n *node, path string, depth int) error {
	n.kind = kindArray
	s.pos++
	if s.space(); s.next(']') {
		return nil
	}
	for {
		item, err := s.value(indexPath(path, len(n.items)), depth+1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
		s.space()
		if s.next(']') {
			return nil
		}
		if !s.next(',') {
			return s.fail(path, s.here(), "\",\" or \"]\" after an element of the array")
		}
	}
}

func (s *strict) object(n *node, path string, depth int) error {
	n.kind = kindObject
	s.pos++
	if s.space(); s.next('}') {
		return nil
	}
	first := map[string]int{}
	for {
		m, err := s.member(path, depth, first)
		if err != nil {
			return err
		}
		n.members = append(n.members, m)
		s.space()
		if s.next('}') {
			return nil
		}
		if !s.next(',') {
			return s.fail(path, s.here(), "\",\" or \"}\" after a property")
		}
	}
}

// member reads one property; first has the line of each name seen before.
func (s *strict) member(path string, depth int, first map[string]int) (member, error) {
	s.space()
	if s.peek() != '"' {
		return member{}, s.fail(path, s.here(), "a property's name in double quotes"+s.slip())
	}
	m := member{line: s.line}
	var err error
	if m.name, err = s.str(path); err != nil {
		return member{}, err
	}
	own := joinPath(path, m.name)
	if line, dup := first[m.name]; dup {
		return member{}, s.fail(own, "the property a second time", fmt.Sprintf("each property once (the first is on line %d)", line))
	}
	first[m.name] = m.line
	if s.space(); !s.next(':') {
		return member{}, s.fail(own, s.here(), "\":\" after the property's name")
	}
	m.value, err = s.value(own, depth+1)
	return m, err
}
