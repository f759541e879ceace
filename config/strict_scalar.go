package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"urdma/schema"
)

// str reads a string and decodes its escapes (RFC 8259, section 7).
func (s *strict) str(path string) (string, error) {
	s.pos++ // the opening quote
	var b strings.Builder
	for {
		if s.pos >= len(s.src) {
			return "", s.fail(path, s.here(), "the closing double quote of a string")
		}
		c := s.src[s.pos]
		switch {
		case c == '"':
			s.pos++
			return b.String(), nil
		case c == '\\':
			r, err := s.escape(path)
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		case c < ' ':
			return "", s.fail(path, fmt.Sprintf("the control character 0x%02x in a string", c), "an escape such as \\n or \\u0009")
		default:
			_, n := utf8.DecodeRune(s.src[s.pos:])
			b.Write(s.src[s.pos : s.pos+n])
			s.pos += n
		}
	}
}

const escapes = `"\/bfnrt`
const escaped = "\"\\/\b\f\n\r\t"

// escape reads one escape. It refuses \u0000, which would end a path early in
// a system call, and halves of surrogate pairs, which are no characters.
func (s *strict) escape(path string) (rune, error) {
	s.pos++ // the backslash
	c := s.peek()
	if c != 'u' {
		i := strings.IndexByte(escapes, c)
		if i < 0 || s.pos >= len(s.src) {
			return 0, s.fail(path, s.here()+" after a backslash", "one of \" \\ / b f n r t u")
		}
		s.pos++
		return rune(escaped[i]), nil
	}
	r, err := s.hex(path)
	if err != nil {
		return 0, err
	}
	if utf16.IsSurrogate(r) {
		return s.secondHalf(path, r)
	}
	if r == 0 {
		return 0, s.fail(path, "\\u0000 in a string", "characters other than NUL")
	}
	return r, nil
}

func (s *strict) secondHalf(path string, first rune) (rune, error) {
	if s.pos+1 < len(s.src) && s.src[s.pos] == '\\' && s.src[s.pos+1] == 'u' {
		s.pos++
		second, err := s.hex(path)
		if err != nil {
			return 0, err
		}
		if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
			return r, nil
		}
	}
	return 0, s.fail(path, fmt.Sprintf("\\u%04x, one half of a surrogate pair", first), "both halves, or neither")
}

// hex reads "uXXXX".
func (s *strict) hex(path string) (rune, error) {
	s.pos++ // the u
	end := min(s.pos+4, len(s.src))
	digits := string(s.src[s.pos:end])
	v, err := strconv.ParseUint(digits, 16, 16)
	if len(digits) != 4 || err != nil {
		return 0, s.fail(path, strconv.Quote(digits)+" after \\u", "four hexadecimal digits")
	}
	s.pos = end
	return rune(v), nil
}

// allowedInteger is the setting's own range, if it is one.
func allowedInteger(path string) string {
	if p, ok := schema.Lookup(schema.Generic(path)); ok && p.IsNumber() {
		return p.Allowed()
	}
	return fmt.Sprintf("an integer from %d to %d", math.MinInt64, math.MaxInt64)
}

// number reads a number. An integer must fit 64 bits, anything else a finite
// float64 of ordinary size: the schema validator computes with exact
// fractions, which an exponent of a billion would turn into gigabytes.
func (s *strict) number(path string) error {
	start := s.pos
	s.next('-')
	whole := s.digits()
	leadingZero := len(whole) > 1 && whole[0] == '0'
	integer := true
	bad := len(whole) == 0 || leadingZero
	if !bad && s.next('.') {
		integer = false
		bad = len(s.digits()) == 0
	}
	if c := s.peek(); !bad && (c == 'e' || c == 'E') {
		integer = false
		s.pos++
		if !s.next('-') {
			s.next('+')
		}
		bad = len(s.digits()) == 0
	}
	raw := string(s.src[start:s.pos])
	if bad {
		return s.fail(path, shorten(raw)+" followed by "+s.here(), "a number as JSON writes it (no leading zero, digits on both sides of a point)")
	}
	if integer {
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

// tiny tells whether a number other than zero became zero, or nearly so.
func tiny(raw string, f float64) bool {
	if f != 0 {
		return math.Abs(f) < 1e-300
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(raw), "e")
	return strings.ContainsAny(mantissa, "123456789") || len(exponent) > 4
}

func (s *strict) digits() string {
	start := s.pos
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.pos++
	}
	return string(s.src[start:s.pos])
}
