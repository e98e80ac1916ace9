package quantmf

// This file holds texts: enumerations, losses and projections in the words that the flags of the command and
// the options in JavaScript have, for configurations; and models, for JSON and whatever else takes no bytes.
// All are encoding.TextMarshaler and TextUnmarshaler, which encoding/json and its kin know.

import (
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/section"
)

// methods and phases are the words for methods and phases, by their values.
var (
	methods = [...]string{"nmf", "qmf", "qmfq", "bqmf", "auto"}
	phases  = [...]string{"choice", "factors", "maps", "qmf", "epochs"}
)

// textOf is the MarshalText of an enumeration.
func textOf[E ~uint8](what string, words []string, v E) ([]byte, error) {
	if int(v) >= len(words) {
		return nil, &OptionError{Option: what, Value: itoa(int(v)),
			Bound: "is no constant, so it has no text"}
	}
	return []byte(words[v]), nil
}

// fromText is the UnmarshalText of an enumeration.
func fromText[E ~uint8](what string, words []string, to *E, text []byte) error {
	i := slices.Index(words, string(text))
	if i < 0 {
		return &OptionError{Option: what, Value: string(text),
			Bound: "must be one of " + strings.Join(words, ", ")}
	}
	*to = E(i)
	return nil
}

// MarshalText returns nmf, qmf, qmfq, bqmf or auto.
func (m Method) MarshalText() ([]byte, error) { return textOf("Method", methods[:], m) }

// UnmarshalText reads what MarshalText writes.
func (m *Method) UnmarshalText(text []byte) error { return fromText("Method", methods[:], m, text) }

// MarshalText returns choice, factors, maps, qmf or epochs.
func (p Phase) MarshalText() ([]byte, error) { return textOf("Phase", phases[:], p) }

// UnmarshalText reads what MarshalText writes.
func (p *Phase) UnmarshalText(text []byte) error { return fromText("Phase", phases[:], p, text) }

// MarshalText returns logistic, none, logisticUnit or arctan.
func (s Squash) MarshalText() ([]byte, error) {
	return textOf(option.Squash.String(), option.Squash.Words(), s)
}

// UnmarshalText reads what MarshalText writes.
func (s *Squash) UnmarshalText(text []byte) error {
	return fromText(option.Squash.String(), option.Squash.Words(), s, text)
}

// MarshalText returns cosine or constant.
func (s Schedule) MarshalText() ([]byte, error) {
	return textOf(option.Schedule.String(), option.Schedule.Words(), s)
}

// UnmarshalText reads what MarshalText writes.
func (s *Schedule) UnmarshalText(text []byte) error {
	return fromText(option.Schedule.String(), option.Schedule.Words(), s, text)
}

// MarshalText returns newton or multiplicative.
func (u Updates) MarshalText() ([]byte, error) {
	return textOf(option.Updates.String(), option.Updates.Words(), u)
}

// UnmarshalText reads what MarshalText writes.
func (u *Updates) UnmarshalText(text []byte) error {
	return fromText(option.Updates.String(), option.Updates.Words(), u, text)
}

// MarshalText returns auto, scores, nmf, uniform or svd.
func (s Start) MarshalText() ([]byte, error) {
	return textOf(option.Start.String(), option.Start.Words(), s)
}

// UnmarshalText reads what MarshalText writes.
func (s *Start) UnmarshalText(text []byte) error {
	return fromText(option.Start.String(), option.Start.Words(), s, text)
}

// MarshalText returns free or pinned.
func (e Ends) MarshalText() ([]byte, error) {
	return textOf(option.Ends.String(), option.Ends.Words(), e)
}

// UnmarshalText reads what MarshalText writes.
func (e *Ends) UnmarshalText(text []byte) error {
	return fromText(option.Ends.String(), option.Ends.Words(), e, text)
}

// MarshalText returns kl, frobenius or β, and auto for the zero Loss.
func (l Loss) MarshalText() ([]byte, error) {
	switch l {
	case 0:
		return []byte("auto"), nil
	case KL:
		return []byte("kl"), nil
	case Frobenius:
		return []byte("frobenius"), nil
	}
	return []byte(ftoa(float64(l.of(0)))), nil
}

// UnmarshalText reads what MarshalText writes. Any number is taken here, and has its bounds from [WithLoss].
func (l *Loss) UnmarshalText(text []byte) error {
	switch string(text) {
	case "auto":
		*l = 0
	case "kl":
		*l = KL
	case "frobenius":
		*l = Frobenius
	default:
		beta, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			return &OptionError{Option: option.Loss.String(), Value: string(text),
				Bound: "must be auto, kl, frobenius or the β of a divergence"}
		}
		*l = Beta(beta)
	}
	return nil
}

// MarshalText returns kl:N, frobenius:N or svd, and nothing for the zero Projection.
func (p Projection) MarshalText() ([]byte, error) {
	switch p.of.Kind {
	case projection.KL:
		return []byte("kl:" + itoa(p.of.Updates)), nil
	case projection.Frobenius:
		return []byte("frobenius:" + itoa(p.of.Updates)), nil
	case projection.SVD:
		return []byte("svd"), nil
	}
	return nil, nil
}

// UnmarshalText reads what MarshalText writes.
func (p *Projection) UnmarshalText(text []byte) error {
	kind, count, _ := strings.Cut(string(text), ":")
	n, err := strconv.Atoi(count)
	switch {
	case len(text) == 0:
		*p = Projection{}
	case string(text) == "svd":
		*p = TruncatedSVD()
	case err == nil && kind == "kl":
		*p = KLUpdates(n)
	case err == nil && kind == "frobenius":
		*p = FrobeniusUpdates(n)
	default:
		return &OptionError{Option: option.Projection.String(), Value: string(text),
			Bound: "must be kl:N, frobenius:N or svd"}
	}
	return nil
}

// marshalText is the MarshalText of a model: its method and its file in base64.
func marshalText(method Method, m interface{ MarshalBinary() ([]byte, error) }) ([]byte, error) {
	data, err := m.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return section.Base64(append([]byte(methods[method]), ':'), data), nil
}

// unmarshalText is the UnmarshalText of a model.
func unmarshalText(method Method, m interface{ UnmarshalBinary([]byte) error }, text []byte) error {
	of, data, err := modelText(text)
	if err == nil && of != method {
		err = &FormatError{Problem: "this is a model of " + of.String() + ", not of " + method.String()}
	}
	if err != nil {
		return err
	}
	return m.UnmarshalBinary(data)
}

// modelText returns the method and the file in the text of a model.
func modelText(text []byte) (of Method, data []byte, err error) {
	end := slices.Index(text[:min(len(text), 5)], ':')
	if end < 0 || of.UnmarshalText(text[:end]) != nil {
		return 0, nil, &FormatError{Problem: "the text of a model begins with nmf:, qmf:, qmfq: or bqmf:"}
	}
	data, at := section.FromBase64(text[end+1:])
	if at >= 0 {
		return 0, nil, &FormatError{Offset: int64(end + 1 + at), Problem: "this is no base64"}
	}
	return of, data, nil
}

// MarshalText returns the model as a text, for JSON: nmf: and its file in base64.
func (m *NMF) MarshalText() ([]byte, error) { return marshalText(MethodNMF, m) }

// UnmarshalText reads what MarshalText writes. Errors are those of UnmarshalBinary.
func (m *NMF) UnmarshalText(text []byte) error { return unmarshalText(MethodNMF, m, text) }

// MarshalText returns the model as a text, for JSON: qmf: and its file in base64.
func (q *QMF) MarshalText() ([]byte, error) { return marshalText(MethodQMF, q) }

// UnmarshalText reads what MarshalText writes. Errors are those of UnmarshalBinary.
func (q *QMF) UnmarshalText(text []byte) error { return unmarshalText(MethodQMF, q, text) }

// MarshalText returns the model as a text, for JSON: qmfq: and its file in base64.
func (q *QMFQ) MarshalText() ([]byte, error) { return marshalText(MethodQMFQ, q) }

// UnmarshalText reads what MarshalText writes. Errors are those of UnmarshalBinary.
func (q *QMFQ) UnmarshalText(text []byte) error { return unmarshalText(MethodQMFQ, q, text) }

// MarshalText returns the model as a text, for JSON: bqmf: and its file in base64.
func (m *BQMF) MarshalText() ([]byte, error) { return marshalText(MethodBQMF, m) }

// UnmarshalText reads what MarshalText writes. Errors are those of UnmarshalBinary.
func (m *BQMF) UnmarshalText(text []byte) error { return unmarshalText(MethodBQMF, m, text) }
