package survival

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// reference is the folder with the outputs of R. The numbers of the smallest output are in this
// file, so that they are compared wherever the test runs.
const reference = "../../../../shared/data/coxph-reference"

func load(t *testing.T, name string, to any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(reference, name))
	if os.IsNotExist(err) {
		t.Skip("no outputs of R here")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}

// table reads columns of numbers; NA is NaN.
func table(t *testing.T, name string) map[string][]float64 {
	t.Helper()
	f, err := os.Open(filepath.Join(reference, name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string][]float64{}
	for _, line := range lines[1:] {
		for c, field := range line {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				v = math.NaN()
			}
			columns[lines[0][c]] = append(columns[lines[0][c]], v)
		}
	}
	return columns
}

// numbers is a JSON number or an array of them, nested or not.
type numbers []float64

func (n *numbers) UnmarshalJSON(text []byte) error {
	flat := strings.NewReplacer("[", "", "]", "").Replace(string(text))
	return json.Unmarshal([]byte("["+flat+"]"), (*[]float64)(n))
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-10*max(math.Abs(want), 1e-3)) {
		t.Errorf("%s: %.15g, R has %.15g, off by %.1g", what, got, want, math.Abs(got-want)/math.Abs(want))
	}
}

var formula = regexp.MustCompile(`Surv\((\w+), (\w+)\) ~ (.*)`)

// Models of R with Efron's treatment of ties.
func TestCoxAgreesWithR(t *testing.T) {
	var r struct {
		Models []struct {
			Dataset, Formula, Ties string
			Coef, P                numbers
			LR                     numbers `json:"lr_test"`
		}
	}
	load(t, "coxph.json", &r)
	compared := 0
	for _, want := range r.Models {
		if want.Ties != "efron" {
			continue
		}
		compared++
		t.Run(want.Dataset+"/"+want.Formula, func(t *testing.T) {
			data := table(t, want.Dataset)
			part := formula.FindStringSubmatch(want.Formula)
			var time []float64
			var event []bool
			var x [][]float64
		rows:
			for i := range data[part[1]] {
				var row []float64
				for _, term := range strings.Split(part[3], "+") {
					v := data[strings.TrimSpace(term)][i]
					if math.IsNaN(v) {
						continue rows // R drops samples with a missing value
					}
					row = append(row, v)
				}
				time, event, x = append(time, data[part[1]][i]), append(event, data[part[2]][i] == 1),
					append(x, row)
			}
			m, err := FitCox(time, event, x)
			if err != nil {
				t.Fatal(err)
			}
			if !m.Converged {
				t.Error("not converged")
			}
			for c := range want.Coef {
				near(t, "coefficient", m.Coef[c], want.Coef[c])
				near(t, "p", m.P[c], want.P[c])
			}
			near(t, "p of the likelihood ratio", m.LR, want.LR[2])
		})
	}
	if compared < 10 {
		t.Errorf("%d models", compared)
	}
}

func TestEdgesAgreeWithR(t *testing.T) {
	var r struct {
		Edge struct {
			Monotone struct {
				Data []struct{ Time, Status, X float64 }
			}
			Scaling struct {
				Z float64 `json:"z_age"`
			}
		}
		Adjust struct {
			P, Bonferroni []float64
		} `json:"p_adjust"`
	}
	load(t, "other.json", &r)

	var time []float64
	var event []bool
	var x [][]float64
	for _, d := range r.Edge.Monotone.Data {
		time, event, x = append(time, d.Time), append(event, d.Status == 1), append(x, []float64{d.X})
	}
	if m, err := FitCox(time, event, x); err != nil || m.Converged {
		t.Errorf("a likelihood without a maximum: %+v, %v", m, err)
	}

	lung := table(t, "lung")
	event, x = nil, nil
	for i, e := range lung["event"] {
		event = append(event, e == 1)
		x = append(x, []float64{lung["age"][i] * 1e6})
	}
	m, err := FitCox(lung["time"], event, x)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "p of a scaled covariate", m.P[0], math.Erfc(math.Abs(r.Edge.Scaling.Z)/math.Sqrt2))
	for i := range x {
		x[i] = append(x[i], -x[i][0])
	}
	if _, err := FitCox(lung["time"], event, x); err == nil {
		t.Error("a covariate that is another one is fitted")
	}
	for i := range x {
		x[i] = []float64{3}
	}
	if _, err := FitCox(lung["time"], event, x); err == nil {
		t.Error("a constant covariate is fitted")
	}
	for i := range r.Adjust.P {
		near(t, "Bonferroni", Bonferroni(r.Adjust.P)[i], r.Adjust.Bonferroni[i])
	}
}

// Seven samples with ties are few enough to compute by hand: at β = 0 the partial likelihood is a product of
// counts.
func TestCoxByHand(t *testing.T) {
	time := []float64{4, 3, 1, 1, 2, 2, 3}
	event := []bool{true, true, true, false, true, true, false}
	x := [][]float64{{0}, {2}, {1}, {1}, {1}, {0}, {0}}
	s, _, err := newSample(time, event, x)
	if err != nil {
		t.Fatal(err)
	}
	// Deaths: at 1 one of 7; at 2 two of 5; at 3 one of 3; at 4 one of 1.
	if got, want := s.likelihood([]float64{0}).value, -math.Log(7*5*4*3); math.Abs(got-want) > 1e-14 {
		t.Errorf("log likelihood at 0 is %v, by hand %v", got, want)
	}
}
