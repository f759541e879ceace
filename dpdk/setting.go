package dpdk

import "fmt"

// SettingError is what is wrong with a port's settings, as far as it takes the
// machine to find out.
type SettingError struct {
	Port    string // its name
	Setting string // as urdma.json calls it
	Found   any
	Allowed string
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("port %q: %s: found %v, allowed: %s", e.Port, e.Setting, e.Found, e.Allowed)
}
