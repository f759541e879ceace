package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urdma/config"
)

// read returns the settings of a file with these contents.
func read(t *testing.T, text string) []config.Setting {
	t.Helper()
	file := filepath.Join(t.TempDir(), "urdma.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.LoadStrict(file)
	if err != nil {
		t.Fatal(err)
	}
	return c.Settings
}

func TestDiff(t *testing.T) {
	const port = `{"vdev":"loopback","ipv4_address":"198.18.0.1/24"}`
	const second = `{"vdev":"loopback","ipv4_address":"198.18.1.1/24"}`
	for _, x := range []struct {
		name, before, after string
		want                []string // "path from>to", with "live " in front if it needs no restart
	}{
		{"nothing", `{"ports":[` + port + `]}`, `{"$comment":"new", "ports": [ ` + port + ` ], "log_level":"info"}`, nil},
		{"live ones", `{"ports":[` + port + `]}`,
			`{"ports":[` + port + `],"log_level":"debug","limits":{"clients":3},"death_timeout_ms":500,"socket_group":"5"}`,
			[]string{`live death_timeout_ms 4000>500`, `live limits.clients 256>3`, `live log_level "info">"debug"`,
				`live socket_group "">"5"`}},
		{"taken away again", `{"ports":[` + port + `],"limits":{"clients":3}}`, `{"ports":[` + port + `]}`,
			[]string{`live limits.clients 3>256`}},
		{"of a port", `{"ports":[` + port + `]}`, `{"ports":[{"vdev":"loopback","ipv4_address":"198.18.0.2/24","mtu":1500}]}`,
			[]string{`ports[0].ipv4_address "198.18.0.1/24">"198.18.0.2/24"`, `ports[0].mtu 9000>1500`}},
		{"a property without default", `{"ports":[` + port + `]}`,
			`{"ports":[{"vdev":"loopback","ipv4_address":"198.18.0.1/24","mac_address":"02:00:00:00:00:07"}]}`,
			[]string{`ports[0].mac_address >"02:00:00:00:00:07"`}},
		{"and away", `{"ports":[{"vdev":"loopback","ipv4_address":"198.18.0.1/24","mac_address":"02:00:00:00:00:07"}]}`,
			`{"ports":[` + port + `]}`, []string{`ports[0].mac_address "02:00:00:00:00:07">`}},
		{"a port more", `{"ports":[` + port + `]}`, `{"ports":[` + port + `,` + second + `]}`,
			[]string{`ports[1] not there>there`}},
		{"a port less", `{"ports":[` + port + `,` + second + `]}`, `{"ports":[` + port + `]}`,
			[]string{`ports[1] there>not there`}},
		{"another core", `{"ports":[` + port + `]}`, `{"ports":[` + port + `],"workers":[{"core":1}]}`,
			[]string{`workers[0].core -1>1`}},
		{"others", `{"ports":[` + port + `]}`, `{"ports":[` + port + `],"eal_args":{"no-huge":true},"log_format":"json"}`,
			[]string{`eal_args {}>{"no-huge":true}`, `log_format "auto">"json"`}},
	} {
		t.Run(x.name, func(t *testing.T) {
			var got []string
			for _, c := range diff(settings(read(t, x.before)), read(t, x.after)) {
				text := c.path + " " + c.from + ">" + c.to
				if c.live {
					text = "live " + text
				}
				got = append(got, text)
			}
			slices.SortFunc(got, func(a, b string) int {
				return strings.Compare(strings.TrimPrefix(a, "live "), strings.TrimPrefix(b, "live "))
			})
			if !slices.Equal(got, x.want) {
				t.Errorf("found\n  %s\nexpected\n  %s", strings.Join(got, "\n  "), strings.Join(x.want, "\n  "))
			}
		})
	}
}

// TestChangesInWords: the user who requests a reload gets the same text as the log.
func TestChangesInWords(t *testing.T) {
	got := changesInWords("urdma.json", []change{{path: "log_level", from: `"info"`, to: `"debug"`, live: true}},
		[]string{"unknown property"})
	want := "urdma.json is read again\napplied: log_level from \"info\" to \"debug\"\nwarning: unknown property"
	if got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}

// TestLiveSettingsExist: a renamed setting would never be applied.
func TestLiveSettingsExist(t *testing.T) {
	known := config.Default().Settings
	for _, l := range live {
		if !slices.ContainsFunc(known, func(s config.Setting) bool { return l.covers(s.Path) }) {
			t.Errorf("no setting is called %s", l.path)
		}
	}
}

// TestLoggedValues: the log quotes a string once at most.
func TestLoggedValues(t *testing.T) {
	for value, want := range map[string]string{`"debug"`: "debug", `""`: "", "1500": "1500", `["a"]`: `["a"]`, "": ""} {
		if got := logged(value); got != want {
			t.Errorf("%s is logged as %s, expected %s", value, got, want)
		}
	}
}
