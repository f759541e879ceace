package inspect

import (
	"errors"
	"fmt"
	"strings"

	"urdma/verbs/abi"
)

// ErrRefused comes with the reason why urdmad refused a request.
var ErrRefused = errors.New("refused")

// Administer asks urdmad for an operation, one of the abi.Admin constants, and returns a text that says what urdmad
// did. It fails with *Refusal: EPERM, the caller lacks permission; ENOENT, no such object that the caller may see.
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
