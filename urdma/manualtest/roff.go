package manualtest

import (
	"fmt"
	"strings"
)

// page collects roff source.
type page struct{ b strings.Builder }

// newPage begins a page with its title line.
func newPage(name, section, about string) *page {
	p := &page{}
	p.b.WriteString(".\\\" Printed by a program: change its source, not this file.\n")
	fmt.Fprintf(&p.b, ".TH %s %s \"\" urdma \"urdma manual\"\n", escape(strings.ToUpper(name)), section)
	p.b.WriteString(".nh\n.ad l\n") // never hyphenate: a path must not be broken
	p.section("Name")
	p.line(escape(name) + " \\- " + escape(about))
	return p
}

func (p *page) String() string { return p.b.String() }

func (p *page) section(title string) { fmt.Fprintf(&p.b, ".SH %s\n", escape(title)) }

func (p *page) subsection(title string) { fmt.Fprintf(&p.b, ".SS %s\n", escape(title)) }

func (p *page) paragraph(text string) {
	p.b.WriteString(".PP\n")
	p.text(text)
}

// text writes prose, one sentence per line as is usual in roff. An empty line ends a paragraph.
func (p *page) text(text string) {
	for i, part := range strings.Split(text, "\n\n") {
		if i > 0 {
			p.b.WriteString(".PP\n")
		}
		for _, line := range strings.Split(strings.ReplaceAll(part, ". ", ".\n"), "\n") {
			p.line(escape(line))
		}
	}
}

// line writes a line of source, already escaped.
func (p *page) line(source string) {
	if strings.HasPrefix(source, ".") || strings.HasPrefix(source, "'") {
		p.b.WriteString("\\&")
	}
	p.b.WriteString(source + "\n")
}

// lineBreak ends the line without ending the paragraph.
func (p *page) lineBreak() { p.b.WriteString(".br\n") }

// item begins a tagged paragraph with a bold tag.
func (p *page) item(tag, rest string) {
	fmt.Fprintf(&p.b, ".TP\n\\fB%s\\fR", escape(tag))
	if rest != "" {
		fmt.Fprintf(&p.b, " \\fI%s\\fR", escape(rest))
	}
	p.b.WriteByte('\n')
}

// example writes lines unchanged, in a block that isn't filled.
func (p *page) example(lines string) {
	p.b.WriteString(".PP\n.RS 4\n.nf\n")
	for _, l := range strings.Split(strings.Trim(lines, "\n"), "\n") {
		p.line(escape(l))
	}
	p.b.WriteString(".fi\n.RE\n")
}

// escape makes text safe in a line. It escapes the escape character, the hyphen (which may print as another
// character), and all characters beyond ASCII.
func escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString("\\e")
		case r == '-':
			b.WriteString("\\-")
		case r == '^':
			b.WriteString("\\(ha")
		case r == '~':
			b.WriteString("\\(ti")
		case r == '`':
			b.WriteString("\\(ga")
		case r == '\'':
			b.WriteString("\\(aq")
		case r == '"':
			b.WriteString("\\(dq")
		case r > 126:
			fmt.Fprintf(&b, "\\[u%04X]", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
