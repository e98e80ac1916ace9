// Package say fills sentences in as package fmt does, for the verbs and types that readers and reports need. Package
// fmt links reflect and os, which no module of WebAssembly needs for messages.
package say

import "strconv"

// Sprintf is fmt's, for %% and
//
//	%s %v  strings, errors
//	%q     strings, bytes
//	%d %v  whole numbers; %v of []int
//	%02x   whole numbers, with at least two digits
//	%c     bytes
//	%g %v  numbers, with a precision (%.3g), too
//	%f     numbers, with a precision
//
// Mistakes are marked as fmt marks them, by %!; go vet -printf.funcs finds them.
func Sprintf(format string, args ...any) string {
	b := make([]byte, 0, 2*len(format))
	next := 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b = append(b, format[i])
			continue
		}
		i++
		digits := -1
		if format[i] == '.' {
			for digits, i = 0, i+1; '0' <= format[i] && format[i] <= '9'; i++ {
				digits = 10*digits + int(format[i]-'0')
			}
		}
		verb := format[i]
		if verb == '%' {
			b = append(b, '%')
			continue
		}
		if verb == '0' {
			i += 2
			verb = format[i]
		}
		if next == len(args) {
			b = append(b, "%!"+string(verb)+"(MISSING)"...)
			continue
		}
		b = appendValue(b, args[next], verb, digits)
		next++
	}
	if next < len(args) {
		b = append(b, "%!(EXTRA)"...)
	}
	return string(b)
}

// appendValue appends a value as the verb says.
func appendValue(b []byte, value any, verb byte, digits int) []byte {
	switch v := value.(type) {
	case string:
		return appendText(b, v, verb)
	case error:
		return appendText(b, v.Error(), verb)
	case []int:
		b = append(b, '[')
		for i, n := range v {
			if i > 0 {
				b = append(b, ' ')
			}
			b = strconv.AppendInt(b, int64(n), 10)
		}
		return append(b, ']')
	case float64:
		if verb == 'f' {
			return strconv.AppendFloat(b, v, 'f', digits, 64)
		}
		return strconv.AppendFloat(b, v, 'g', digits, 64)
	case byte:
		switch verb {
		case 'c':
			return append(b, string(rune(v))...)
		case 'q':
			return strconv.AppendQuoteRune(b, rune(v))
		}
		return appendWhole(b, int64(v), verb)
	case int:
		return appendWhole(b, int64(v), verb)
	case int64:
		return appendWhole(b, v, verb)
	case uint32:
		return appendWhole(b, int64(v), verb)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	}
	return append(b, "%!"+string(verb)+"(?)"...)
}

func appendText(b []byte, text string, verb byte) []byte {
	if verb == 'q' {
		return strconv.AppendQuote(b, text)
	}
	return append(b, text...)
}

func appendWhole(b []byte, v int64, verb byte) []byte {
	if verb != 'x' {
		return strconv.AppendInt(b, v, 10)
	}
	if v < 16 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, v, 16)
}
