package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"urdma/schema"
)

const (
	// maxBytes bounds a configuration file; real ones have a few KiB.
	maxBytes = 1 << 20
	// maxDepth is far more than the depth of the schema, and needs little stack.
	maxDepth = 32
)

// strict decodes JSON (RFC 8259) and refuses documents that the later readers would read differently. Of two equal
// keys gjson takes the first and the schema validator the last, and neither reads beyond the end of the first
// value.
type strict struct {
	file string
	src  []byte
	json *json.Decoder
	line int // line of the last token
	pos  int // lines are counted up to this offset
}

// decode reads one whole file.
func decode(file string, src []byte) (*document, error) {
	s := &strict{file: file, src: src, json: json.NewDecoder(bytes.NewReader(src)), line: 1}
	s.json.UseNumber()
	if err := s.checkBytes(); err != nil {
		return nil, err
	}
	root, err := s.value("", 0)
	if err != nil {
		return nil, err
	}
	if rest := bytes.TrimLeft(src[s.reached():], " \t\r\n"); len(rest) > 0 {
		s.line += bytes.Count(src[s.pos:len(src)-len(rest)], []byte("\n"))
		r, _ := utf8.DecodeRune(rest)
		return nil, s.fail("", fmt.Sprintf("%q after the end of the configuration", r),
			"one JSON object, then the end of the file")
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

// fail is an error at the last token.
func (s *strict) fail(path, found, allowed string) *Error {
	return &Error{File: s.file, Path: path, Line: s.line, Found: found, Allowed: allowed}
}

// reached counts the lines up to the decoder's position.
func (s *strict) reached() int {
	at := int(s.json.InputOffset())
	s.line += bytes.Count(s.src[s.pos:at], []byte("\n"))
	s.pos = at
	return at
}

// token reads the next token of the value at path.
func (s *strict) token(path string) (json.Token, error) {
	t, err := s.json.Token()
	var syntax *json.SyntaxError
	switch at := s.reached(); {
	case err == nil:
		return t, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), at == len(s.src):
		s.line += bytes.Count(s.src[at:], []byte("\n"))
		return nil, s.fail(path, "the end of the file", "complete JSON")
	case errors.As(err, &syntax):
		found, allowed := inWords(syntax)
		return nil, s.fail(path, found, allowed+slip(s.src[at]))
	default:
		return nil, s.fail(path, err.Error(), "correct JSON")
	}
}

// inWords turns an error of encoding/json into our words.
func inWords(e *json.SyntaxError) (found, allowed string) {
	text := strings.TrimPrefix(e.Error(), "invalid character ")
	for _, where := range [][2]string{
		{" looking for beginning of value", "a JSON value"},
		{" looking for beginning of object key string", "a property's name in double quotes"},
		{" after object key", "\":\" after the property's name"},
		{" after object key:value pair", "\",\" or \"}\" after a property"},
		{" after array element", "\",\" or \"]\" after an element of the array"},
	} {
		if found, ok := strings.CutSuffix(text, where[0]); ok {
			return found, where[1]
		}
	}
	return text, "correct JSON"
}

// slip explains the usual mistakes in hand-written JSON.
func slip(c byte) string {
	switch c {
	case '/', '#':
		return " (JSON has no comments; use a \"$comment\" property)"
	case '}', ']':
		return " (a comma stands only between two elements)"
	}
	return ""
}

func (s *strict) value(path string, depth int) (*node, error) {
	t, err := s.token(path)
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, s.fail(path, fmt.Sprintf("values nested more than %d deep", maxDepth), "what urdma.json(5) describes")
	}
	n := &node{line: s.line}
	switch t := t.(type) {
	case json.Delim: // an opening one: the decoder refuses others
		if n.kind = kindArray; t == '{' {
			n.kind = kindObject
			return n, s.object(n, path, depth)
		}
		return n, s.array(n, path, depth)
	case string:
		n.kind, n.text = kindString, t
		return n, s.text(path, t)
	case json.Number:
		n.kind, n.raw = kindNumber, t.String()
		return n, s.number(path, n.raw)
	case bool:
		n.kind, n.raw = kindBool, strconv.FormatBool(t)
	default:
		n.kind, n.raw = kindNull, "null"
	}
	return n, nil
}

func (s *strict) array(n *node, path string, depth int) error {
	for s.json.More() {
		item, err := s.value(indexPath(path, len(n.items)), depth+1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := s.token(path)
	return err
}

func (s *strict) object(n *node, path string, depth int) error {
	first := map[string]int{} // line of each name
	for s.json.More() {
		t, err := s.token(path)
		if err != nil {
			return err
		}
		m := member{name: t.(string), line: s.line} // otherwise the token was an error
		own := joinPath(path, m.name)
		if err := s.text(path, m.name); err != nil {
			return err
		}
		if line, dup := first[m.name]; dup {
			return s.fail(own, "the property a second time", fmt.Sprintf("each property once (the first is on line %d)", line))
		}
		first[m.name] = m.line
		if m.value, err = s.value(own, depth+1); err != nil {
			return err
		}
		n.members = append(n.members, m)
	}
	_, err := s.token(path)
	return err
}

// text refuses NUL, which would end a path early in a system call, and U+FFFD, which the decoder substitutes for
// half a surrogate pair.
func (s *strict) text(path, text string) error {
	switch {
	case strings.ContainsRune(text, 0):
		return s.fail(path, "\\u0000 in a string", "characters other than NUL")
	case strings.ContainsRune(text, utf8.RuneError):
		return s.fail(path, "one half of a surrogate pair, or U+FFFD, in a string", "both halves, or neither")
	}
	return nil
}

// allowedInteger is the allowed range of an integer setting.
func allowedInteger(path string) string {
	if p, ok := schema.Lookup(schema.Generic(path)); ok && p.IsNumber() {
		return p.Allowed()
	}
	return fmt.Sprintf("an integer from %d to %d", math.MinInt64, math.MaxInt64)
}

// number refuses integers that don't fit into 64 bits, and other numbers that are not finite float64 values of
// ordinary size. The schema validator computes with exact fractions, so an exponent of a billion would take
// gigabytes.
func (s *strict) number(path, raw string) error {
	if !strings.ContainsAny(raw, ".eE") {
		if _, err := strconv.ParseInt(raw, 10, 64); err != nil {
			return s.fail(path, shorten(raw), allowedInteger(path))
		}
		return nil
	}
	if f, err := strconv.ParseFloat(raw, 64); err != nil || tiny(raw, f) || len(raw) > 64 {
		return s.fail(path, shorten(raw), "a number of at most 64 characters and a size a 64-bit float can hold")
	}
	return nil
}

// tiny reports whether a number other than zero was rounded to zero or nearly zero.
func tiny(raw string, f float64) bool {
	if f != 0 {
		return math.Abs(f) < 1e-300
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(raw), "e")
	return strings.ContainsAny(mantissa, "123456789") || len(exponent) > 4
}
