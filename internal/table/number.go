package table

// This file holds the reading of numbers from text, and what a number may be. Plain decimals, which are
// nearly all numbers of tables, are read here and not by strconv.ParseFloat: a text of counts or of three
// decimals is read in 0.4 of the processor time so (BenchmarkReadText).

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// powers are powers of ten, which a float64 holds exactly.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
	1e15, 1e16, 1e17, 1e18, 1e19}

// mostDigits is the number of digits that never overflow.
const mostDigits = 19

// digits reads the digits that b begins with, of a number that began with n, and says how many they are.
func digits(b []byte, n uint64) (uint64, int) {
	for i, c := range b {
		if c -= '0'; c > 9 {
			return n, i
		}
		n = n*10 + uint64(c)
	}
	return n, len(b)
}

// decimal reads the number that b begins with, up to sep or the end of b, and says how long it is. It is for
// digits that make a whole number up to 2^53, with or without the point: there one division rounds once, so
// that the result is the nearest float64 (Clinger, How to read floating point numbers accurately, 1990). All
// else is not ok, and for strconv.
func decimal(b []byte, sep, point byte) (v float64, length int, ok bool) {
	at := 0
	if len(b) > 0 && b[0] == '-' {
		at = 1
	}
	n, whole := digits(b[at:], 0)
	at += whole
	fraction := 0
	if at < len(b) && b[at] == point {
		n, fraction = digits(b[at+1:], n)
		at += 1 + fraction
	}
	if all := whole + fraction; all == 0 || all > mostDigits || n > 1<<53 || at < len(b) && b[at] != sep {
		return 0, 0, false
	}
	v = float64(n)
	if fraction > 0 {
		v /= powers[fraction]
	}
	if b[0] == '-' {
		v = -v
	}
	return v, at, true
}

// numberLike tells whether a cell can stand where a number should: it is one, of whatever size and with
// whatever beside it, or missing.
func (o Options) numberLike(cell string) bool {
	number, _ := o.stripped(cell)
	return o.isMissing(cell) || isNumber(number)
}

// plainLike is numberLike without anything beside the number: the first line of a text may name samples 10%
// and 20%.
func (o Options) plainLike(cell string) bool {
	_, beside := o.stripped(cell)
	return beside == asItIs && o.numberLike(cell)
}

// parse reads a number. What Go alone writes as one is none: 1_2 and 0x1p4 are names of wells and the like.
func parse(text string) (float64, error) {
	if strings.ContainsAny(text, "_xX") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

func isNumber(text string) bool {
	_, err := parse(strings.TrimSpace(text))
	return err == nil || errors.Is(err, strconv.ErrRange)
}

// thousands tells whether commas may stand between the thousands of a number, as in 1,234 and 1,234,567.5.
func thousands(text string) bool {
	whole, _, _ := strings.Cut(text, ".")
	groups := strings.Split(whole, ",")
	first := strings.TrimPrefix(groups[0], "-")
	return len(groups) > 1 && first != "" && len(first) <= 3 && first[0] != '0' &&
		!slices.ContainsFunc(groups[1:], func(g string) bool { return len(g) != 3 }) &&
		isNumber(strings.ReplaceAll(text, ",", ""))
}

// isMissing tells whether a cell says that its value is missing.
func (o Options) isMissing(cell string) bool {
	cell = strings.TrimSpace(cell)
	if slices.Contains(o.NA, cell) {
		return true
	}
	if len(cell) > 4 {
		return false
	}
	switch strings.ToLower(cell) {
	case "", "na", "n/a", "#n/a", "<na>", "nan", "null", "-", ".", "?":
		return true
	case "none": // Python's, but in a clinical table a word
		return len(o.Categories) == 0 || cell == "None"
	}
	return false
}

// number parses a cell, or says what is wrong with it and what to do.
func (o Options) number(cell string) (v float64, problem string) {
	text := strings.TrimSpace(cell)
	missing, err := o.isMissing(text), error(nil)
	if !missing {
		v, err = parse(text)
		missing = err == nil && slices.Contains(o.na, v)
	}
	switch {
	case missing && o.Missing:
		return math.NaN(), ""
	case text == "":
		return 0, "this cell is empty: " + fillIn
	case missing:
		return 0, fmt.Sprintf("%q is a missing value: %s", short(text), fillIn)
	case errors.Is(err, strconv.ErrRange), err == nil && v-v != 0:
		return 0, fmt.Sprintf("%q is not finite: fill in a finite number, or remove the feature or "+
			"the sample", short(text))
	case err != nil:
		return 0, o.noNumber(text)
	}
	return v, o.check(v)
}

// noNumber says of a cell that it holds no number, and what to do.
func (o Options) noNumber(text string) string {
	text = strings.TrimSpace(text)
	switch {
	case o.Decimal == ',' && strings.Contains(text, ".") && isNumber(strings.ReplaceAll(text, ",", "")):
		return fmt.Sprintf("%q has a point where decimals have a comma: write thousands without a mark, or "+
			"give -decimal . if decimals have a point", short(text))
	case thousands(text):
		instead := ""
		if strings.Count(text, ",") == 1 && !strings.Contains(text, ".") {
			instead = "; give -decimal comma if it stands before decimals"
		}
		return fmt.Sprintf("%q has a comma: write decimals with a point, and thousands without a mark%s",
			short(text), instead)
	case hasDecimalComma(text):
		return fmt.Sprintf("%q has a decimal comma: write decimals with a point, or give -decimal comma if "+
			"all have a comma", short(text))
	}
	return fmt.Sprintf("%q is not a number: write a number here; names belong into the first line and the "+
		"first column", short(text))
}

const fillIn = "give -missing, fill in a number, or remove the feature or the sample"

// check says what is wrong with a number.
func (o Options) check(v float64) (problem string) {
	switch {
	case v != v && !o.Missing:
		return "NaN is a missing value: " + fillIn
	case v != v:
		return ""
	case v-v != 0:
		return fmt.Sprintf("%g is not finite: fill in a finite number, or remove the feature or the sample",
			v)
	case v < 0 && !o.Negative:
		return fmt.Sprintf("%g is negative: this needs values of at least 0, such as counts or log2(1+x); "+
			"centred values and log ratios are for -loss frobenius, with any -method but nmf and "+
			"without -log1p", v)
	}
	return ""
}

// fine tells whether check has nothing to say, at once.
func (o Options) fine(v float64) bool {
	return v-v == 0 && (v >= 0 || o.Negative) && (o.na == nil || !slices.Contains(o.na, v))
}

// short cuts what is quoted in a message.
func short(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "..."
	}
	return s
}

// count parses a size or an index.
func count(text string) (uint64, bool) {
	v, err := strconv.ParseUint(text, 10, 31)
	return v, err == nil
}
