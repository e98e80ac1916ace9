package table

// This file holds long tables, which have a line for each value:
//
//	gene,sample,value
//	TP53,A,1.5
//	TP53,B,2
//
// The rules for names recognise them and ask for Options.Long, which says what the columns are. Features and
// samples stand in the order in which they come first; a cell that no line has is a missing value.

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// longColumns gives the three columns of Options.Long their roles.
func (o Options) longColumns(l *layout) string {
	if o.Names != "" {
		return "-long and -names contradict each other: -long names the features, too"
	}
	columns, problem := l.columns("-long", o.Long)
	if problem != "" {
		return problem
	}
	if len(columns) != 3 {
		return fmt.Sprintf("-long %s: must be three columns, of features, samples and values, such as "+
			"gene,sample,value or 1,2,3", quote(o.Long))
	}
	for c := range l.roles {
		l.roles[c] = isLeft
	}
	l.names = columns[0]
	l.roles[columns[0]], l.roles[columns[1]], l.roles[columns[2]] = isName, isSample, isValue
	return ""
}

// isLong refuses what must be a long table: no two lines have the same names of a feature and of a sample,
// and a feature has several lines, or all lines are of one sample.
func (o Options) isLong(l *layout, body [][]cell) string {
	samples, headed := l.sampleColumn()
	var values []int
	for c, role := range l.roles {
		if role == isValue && c != samples {
			values = append(values, c)
		}
	}
	if samples < 0 || len(body) < 3 || len(values) == 0 || len(values) > 1 && !headed {
		return ""
	}
	inFeatures, inSamples, pairs := map[string]bool{}, map[string]bool{}, map[[2]string]bool{}
	for _, r := range body {
		if len(r) == len(l.roles) {
			inFeatures[r[l.names].text], inSamples[r[samples].text] = true, true
			pairs[[2]string{r[l.names].text, r[samples].text}] = true
		}
	}
	severally := len(inFeatures) < len(body) || len(inSamples) == 1 || headed && len(inSamples) < len(body)
	if len(pairs) < len(body) || !severally {
		return ""
	}
	columns := []int{l.names, samples, values[0]}
	if ofSamples(l.heading(l.names)) {
		columns = []int{samples, l.names, values[0]}
	}
	list := l.listed(columns)
	return fmt.Sprintf("this looks like a long table, which has a line for each value: give -long %s, or "+
		"make a "+
		"matrix of it once by quantmf convert -long %s IN OUT.tsv; if it is of one sample, give -names %d-%d",
		list,
		list,
		l.names+1, values[0])
}

// sampleColumn returns the column that would name the samples of a long table, -1 for none: one whose heading
// says so, where that of the names speaks of features, or the other way round; else a column of words.
func (l *layout) sampleColumn() (column int, headed bool) {
	names, words := l.heading(l.names), -1
	for c := l.names + 1; c < len(l.roles); c++ {
		heading := l.heading(c)
		if ofNames(heading) && ofNames(names) && ofSamples(heading) != ofSamples(names) {
			return c, true
		}
		if words < 0 && l.roles[c] == isLeft && !ofNames(heading) && !ofDescription(heading) {
			words = c
		}
	}
	return words, false
}

// listed writes columns as a flag takes them: by their headings, or by their numbers where these are no
// words.
func (l *layout) listed(columns []int) string {
	var headings, numbers []string
	plain := true
	for _, c := range columns {
		heading := l.heading(c)
		plain = plain && l.headed(heading) == c && words(heading) == strings.ToLower(heading)
		_, isNumber := count(heading)
		plain = plain && heading != "" && !isNumber
		headings, numbers = append(headings, heading), append(numbers, strconv.Itoa(c+1))
	}
	if plain {
		return strings.Join(headings, ",")
	}
	return strings.Join(numbers, ",")
}

// longCells are the features and the samples of the lines of a long table.
type longCells struct {
	features, samples differing
	line              place // the one that is read
	lines             list[place]
}

// place is a cell of the matrix: the feature and the sample of a line.
type place struct{ i, j uint32 }

// differing are names, each once, in the order in which they come first.
type differing struct {
	names []string
	index map[string]uint32
}

// add returns the index of a name.
func (d *differing) add(s *source, name []byte) (uint32, error) {
	if i, known := d.index[string(name)]; known {
		return i, nil
	}
	// A name, its place in the list, which doubles, and in the map, at the least half full.
	if err := s.take(int64(len(name))+128, "so many names"); err != nil {
		return 0, err
	}
	if d.index == nil {
		d.index = map[string]uint32{}
	}
	i := uint32(len(d.names))
	d.names = append(d.names, string(name))
	d.index[d.names[i]] = i
	return i, nil
}

// longTable makes the matrix once all lines are known.
func (r *textReader) longTable(values []float64) (*Table, error) {
	places, err := r.long.lines.all()
	if err != nil {
		return nil, err
	}
	t := &Table{Features: r.long.features.names, Samples: r.long.samples.names}
	d, n := len(t.Features), len(t.Samples)
	if err := r.takeMatrix(uint64(d), uint64(n)); err != nil {
		return nil, err
	}
	t.X = quantmf.NewMat(d, n)
	for k := range t.X.Data {
		t.X.Data[k] = math.NaN()
	}
	for k, p := range places {
		cell := &t.X.Row(int(p.i))[p.j]
		if *cell == *cell {
			e := &Error{File: r.file, Line: r.lines[k],
				Problem: "an earlier line has a value of this cell, too: leave one of them"}
			return nil, r.naming(e, t.Features[p.i], t.Samples[p.j])
		}
		*cell = values[k]
	}
	for i := range d {
		if j := slices.IndexFunc(t.X.Row(i), math.IsNaN); j >= 0 && !r.Missing {
			return nil, r.naming(r.wrong("no line has a value of this cell: "+fillIn), t.Features[i],
				t.Samples[j])
		}
	}
	r.give(8 * int64(len(values)+len(places)))
	return t, nil
}
