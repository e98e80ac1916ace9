package report

// This file holds the text of a page while it is written: what escapes names, the parts of
// SVG that all figures share, and the style.

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/quantmf/quantmf/internal/table"
)

// markup is text that is HTML already; any other text is escaped on its way into the page.
type markup string

// document is a page as far as it is written.
type document struct{ bytes.Buffer }

// add writes format, which is HTML, with its verbs filled in; strings among args are escaped.
func (d *document) add(format string, args ...any) {
	for i, a := range args {
		if s, is := a.(string); is {
			args[i] = escape(s)
		}
	}
	fmt.Fprintf(d, format, args...)
}

// escape returns text that HTML shows as it is, in an element as in an attribute. What
// cannot be printed, or would turn the direction of the line, is shown as Go writes it.
func escape(s string) string { return entities.Replace(table.Shown(s)) }

// entities are what package html escapes, whose tables of all others a page need not load.
var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

// clipped returns a name of at most so many characters: its beginning and its end, with an
// ellipsis between.
func clipped(name string, most int) string {
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	r := []rune(name)
	head := most * 2 / 3
	return string(r[:head]) + "…" + string(r[len(r)-(most-1-head):])
}

// section begins a section.
func (d *document) section(title string) { d.add("<section>\n<h2>%s</h2>\n", title) }

// how begins the paragraph that explains a section.
const how = `<p class="how"><b>How to read this.</b> `

// key writes what a line or a colour of a figure means.
func (d *document) key(s series) {
	d.add(`<span><svg viewBox="0 0 30 12" aria-hidden="true">`)
	d.path(s)
	d.add("</svg>%s</span>", s.Label)
}

// path writes a path.
func (d *document) path(s series) {
	d.add(`<path class="%s"`, s.Class)
	if s.Ink != "" {
		d.add(` stroke="%s"`, s.Ink)
	}
	if s.Fill != "" {
		d.add(` fill="%s"`, s.Fill)
	}
	d.add(` d="%s"`, s.Path)
	if s.Says == "" {
		d.add("/>")
		return
	}
	d.add("><title>%s</title></path>", s.Says)
}

// svg opens a figure of the given size, which says in words what it shows.
func (d *document) svg(width, height float64, says string) {
	d.add(`<svg viewBox="0 0 %g %g" role="img"><title>%s</title>`, width, height, says)
}

// text writes a text of a figure; class says how it looks and where it is anchored.
func (d *document) text(class string, x, y float64, text string) {
	d.add(`<text class="%s" x="%s" y="%s">%s</text>`, class, coordinate(x), coordinate(y), text)
}

// upright writes a text that runs upwards, its middle at (x, y).
func (d *document) upright(class string, x, y float64, text string) {
	d.add(`<text class="%s" transform="translate(%s %s) rotate(-90)">%s</text>`, class, coordinate(x),
		coordinate(y), text)
}

// policy forbids scripts and all that is not in the page. The style is known by its hash.
const policy = "default-src 'none'; style-src '" + styleHash +
	"'; img-src data:; base-uri 'none'; form-action 'none'"

// styleHash is the hash of style, as a policy has it.
const styleHash = "sha256-aC9WQV4ipjgqRRr7a7c4fRRLrPe68nJ6J8LP2KKO0YA="

// style has its colours as variables, so that light, dark and print differ in one place.
const style = `
:root { color-scheme: light dark; --back: #fbfaf7; --card: #fff; --text: #1d2529; --soft: #566168;
  --line: #dcdcd5; --grid: #ebebe5;
  --curve: #0b6e69; --compared: #b4530a; --dots: #3f6fb5; --tint: #e3f1ef; --bad: #b3261e; --faint: .42; }
@media screen and (prefers-color-scheme: dark) { :root { --back: #14181a; --card: #1b2124; --text: #e6e9ea;
  --soft: #a5b0b6; --line: #343d42; --grid: #2a3236;
  --curve: #4fc9bd; --compared: #f0a04b; --dots: #86aef0; --tint: #1c3936; --bad: #f2948c; --faint: .62; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .3rem; }
h3 { font-size: .95rem; margin: 0; font-weight: 600; overflow-wrap: anywhere; }
p { margin: .3rem 0 .8rem; max-width: 78ch; overflow-wrap: anywhere; }
.lede, .how, figcaption, summary small { color: var(--soft); }
.how b, figcaption b { color: var(--text); }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(160px, 1fr)); gap: 10px;
  margin: 1.2rem 0 0; padding: 0; list-style: none; }
.numbers li, .card { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 12px 14px; }
.numbers b { display: block; white-space: nowrap; font-size: 1.5rem; line-height: 1.2;
  font-variant-numeric: tabular-nums; }
.numbers li:first-child { background: var(--tint); }
.numbers span { color: var(--soft); font-size: .85rem; line-height: 1.35; display: block; }
.warning { border-left: 4px solid var(--compared); padding: 4px 12px; margin: 1rem 0; }
.unseen { font-size: 1.15rem; font-weight: 600; }
.noise path.curve, .noise .curves path { stroke: var(--soft); stroke-dasharray: 2 5; }
.noise .components, .noise path.dots { opacity: .55; } .noise path.area { fill: var(--soft); }
.none { border-color: var(--bad); } .none b { color: var(--bad); }
figure { margin: .8rem 0 0; }
figcaption { font-size: .85rem; margin-top: .5rem; max-width: 100ch; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg svg { overflow: hidden; }
text { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
.end { text-anchor: end; } .mid { text-anchor: middle; }
  text.title { fill: var(--text); font-size: 13px; font-weight: 600; } text.small { font-size: 11px; }
text.named { font-weight: 600; font-size: 13px; text-anchor: end; fill: var(--curve); }
path { stroke-linecap: round; stroke-linejoin: round; } path:not(.band, .area, .hollow) { fill: none; }
path.grid { stroke: var(--grid); } path.axis { stroke: var(--soft); stroke-linecap: butt; }
path.curve, .curves path { stroke: var(--curve); stroke-width: 2.4; }
path.line { stroke: var(--soft); stroke-width: 1.4; stroke-dasharray: 4 5; }
  path.dots { stroke: var(--dots); stroke-width: 4.5; stroke-opacity: var(--faint); }
path.group { stroke-width: 4.5; stroke-opacity: .75; } path.ring, path.hollow { stroke-width: 1.5; }
  path.hollow { fill: var(--card); } path.area { fill: var(--curve); fill-opacity: .75; }
.frame { fill: none; stroke: var(--line); } image { image-rendering: pixelated; }
  image.fine { image-rendering: auto; }
.two { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); gap: 24px; }
.maps { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 10px; }
.maps .card { margin: 0; padding: 10px 10px 6px; }
.maps h3 { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.maps small { color: var(--soft); font-size: .75rem; display: block; margin-bottom: 4px; }
.key { display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: .85rem; color: var(--soft);
  margin: .4rem 0 .7rem; }
.key svg { display: inline-block; width: 30px; height: 12px; vertical-align: -1px; margin-right: 6px; }
.wide { overflow-x: auto; } .wide > svg { min-width: 860px; }
.components { display: grid; grid-template-columns: repeat(auto-fill, minmax(330px, 1fr)); gap: 10px; }
.parts { display: grid; grid-template-columns: minmax(44%, 1fr) minmax(0, max-content); gap: 0 16px;
  font-size: .85rem; }
.parts ol { list-style: none; margin: 0; padding: 0; min-width: 0; }
.parts li { display: flex; justify-content: space-between; gap: 8px; }
.parts b { font-weight: 500; min-width: 0; overflow-wrap: anywhere; }
  .parts span, .parts .head { color: var(--soft); flex: none; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--soft); font-weight: 500; } th, td { padding: 3px 18px 3px 0;
  border-bottom: 1px solid var(--line); } .chance td { color: var(--soft); }
.goes { font-size: .85rem; margin: .3rem 0 0; } .goes b { font-weight: 500; }
details { border-top: 1px solid var(--line); } details:last-of-type { border-bottom: 1px solid var(--line); }
summary { cursor: pointer; padding: 6px 0; }
.curves { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 14px 16px;
  margin: 8px 0 18px; padding: 0; list-style: none; font-size: .78rem; line-height: 1.3;
  color: var(--soft); font-variant-numeric: tabular-nums; }
.curves li { overflow-wrap: anywhere; }
  .curves b { display: block; font-size: .86rem; color: var(--text); font-weight: 600; }
.curves svg { margin-top: 3px; border-left: 1px solid var(--soft); border-bottom: 1px solid var(--soft); }
  .curves path { stroke-width: 2; }
ul { margin: .3rem 0 .8rem; padding-left: 1.2em; overflow-wrap: anywhere; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px;
  overflow-x: auto; font-size: .85rem; white-space: pre-wrap; overflow-wrap: anywhere; }
a { color: var(--curve); }
@media (max-width: 900px) { .maps { grid-template-columns: repeat(3, minmax(0, 1fr)); } }
@media (max-width: 640px) {
  main { padding: 18px 14px 40px; } h1 { font-size: 1.4rem; }
  .maps { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 8px; } .maps .card { padding: 8px 6px 4px; }
    .maps text { font-size: 13px; }
  .loss text, .loss text.named { font-size: 18px; }
  .numbers { grid-template-columns: repeat(2, minmax(0, 1fr)); } .numbers b { font-size: 1.25rem; }
  .two { display: block; } .components { grid-template-columns: minmax(0, 1fr); }
}
@page { margin: 10mm; }
@media print {
  :root { color-scheme: light; font-size: 8.5pt; --back: #fff; --text: #000; --soft: #444; }
  body { font-size: 1rem; line-height: 1.3; } main { max-width: none; padding: 0; }
  h2 { margin-top: .8rem; } p, figcaption { max-width: none; margin-bottom: .3rem; }
  .how { font-size: .85rem; }
  .card, .numbers li { padding: 5px 8px; } .parts { display: block; } th, td { padding: 0 18px 0 0; }
  .maps, .components, .numbers { grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 6px; }
  details, section:has(.curves, .loss, [download]), .maps figure:nth-of-type(n+9),
    .components figure:nth-of-type(n+5), .parts li:nth-of-type(n+7), ol + ol { display: none; }
  figure, .card, .numbers li { break-inside: avoid; } h2, h3 { break-after: avoid; }
    .wide { overflow: visible; } .wide > svg { min-width: 0; }
  .numbers li { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
`
