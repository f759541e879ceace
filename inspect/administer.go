package inspect

import (
	"errors"
	"fmt"
	"strings"

	"urdma/verbs/abi"
)

// ErrRefused comes with why urdmad did not do what it was asked to.
var ErrRefused = errors.New("refused")

// Administer has urdmad do something, one of the abi.Admin constants, and returns in words
// what it did. *Refusal: EPERM, it is not the caller's to do; ENOENT, no such object that
// the caller may see.
func (s *Source) Administer(op uint32, object uint64, text string) (string, error) {
	q := abi.AdminRequest{Header: abi.Header{Type: abi.Admin}, Op: op, Object: object}
	copy(q.Text[:len(q.Text)-1], text)
	r, file, err := ask[abi.InspectResponse](s, &q)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if r.Bytes > maxSnapshot {
		return "", fmt.Errorf("urdmad at %s gave an answer of %d bytes, expected at most %d", s.path, r.Bytes, maxSnapshot)
	}
	b := make([]byte, r.Bytes)
	if _, err := file.ReadAt(b, 0); err != nil {
		return "", fmt.Errorf("reading the answer of urdmad at %s: %w", s.path, err)
	}
	if why, refused := strings.CutPrefix(string(b), abi.AdminRefused); refused {
		return "", fmt.Errorf("%w: %s", ErrRefused, why)
	}
	return string(b), nil
}
