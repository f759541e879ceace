package manualtest

import (
	"strings"
	"testing"

	"urdma/schema"

	"github.com/spf13/cobra"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":       "plain text",
		"--no-huge":        `\-\-no\-huge`,
		`a\nb`:             `a\enb`,
		`"x" 'y' ^~` + "`": `\(dqx\(dq \(aqy\(aq \(ha\(ti\(ga`,
		"…é":               `\[u2026]\[u00E9]`,
	} {
		if got := escape(in); got != want {
			t.Errorf("escape(%q) = %q, want %q", in, got, want)
		}
	}
}

// A line that begins with a dot or a quote would be taken for a request.
func TestTextIsNoRequest(t *testing.T) {
	p := &page{}
	p.text(".so /etc/passwd. .SH x")
	p.line("'br")
	for _, line := range strings.Split(strings.TrimSuffix(p.String(), "\n"), "\n") {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			t.Errorf("%q is a request", line)
		}
	}
}

func TestConfigPageHasEveryProperty(t *testing.T) {
	text := Config(nil, nil)
	for _, p := range schema.Properties() {
		name := p.Path[strings.LastIndexByte(p.Path, '.')+1:]
		if !strings.Contains(text, "\n\\fB"+escape(name)+"\\fR ") {
			t.Errorf("%s is missing", p.Path)
		}
	}
	if got := strings.Count(text, "\n.TP\n"); got != len(schema.Properties()) {
		t.Errorf("%d entries for %d properties", got, len(schema.Properties()))
	}
}

func TestCommandPage(t *testing.T) {
	root := &cobra.Command{Use: "tool", Short: "do things", Long: "It does things. Twice."}
	child := &cobra.Command{Use: "act FILE", Long: "Act.\n\nIt acts.", Example: "  tool act a\n  tool act b",
		Run: func(*cobra.Command, []string) {}}
	child.Flags().StringP("out", "o", "", "`FILE` to write")
	hidden := &cobra.Command{Use: "secret", Hidden: true, Run: func(*cobra.Command, []string) {}}
	root.AddCommand(child, hidden)
	text := Command(root, []Section{{Title: "Notes", Items: [][2]string{{"0", "Success."}}}})
	for _, want := range []string{
		".TH TOOL 1 ", "tool \\- do things\n", "\\fBtool act\\fR FILE [flags]\n", "It does things.\nTwice.\n",
		".SS act FILE [flags]\nAct.\n.PP\nIt acts.\n", ".TP\n\\fB\\-o, \\-\\-out\\fR \\fIFILE\\fR\nFILE to write.\n",
		"tool act a\ntool act b\n",
		".SH Notes\n.TP\n\\fB0\\fR\nSuccess.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "secret") {
		t.Error("a hidden command is on the page")
	}
}
