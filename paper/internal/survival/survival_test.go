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

// All 35 models of R, with the three ways to treat ties.
func TestCoxAgreesWithR(t *testing.T) {
	var r struct {
		Models []struct {
			Dataset, Formula    string
			Ties                Ties
			N, Nevent, Iter     int
			Coef, Se, Z, P, Var numbers
			LoglikNull          float64 `json:"loglik_null"`
			Loglik, Concordance float64
			LR                  numbers `json:"lr_test"`
			Wald                numbers `json:"wald_test"`
			Score               numbers `json:"score_test"`
		}
	}
	load(t, "coxph.json", &r)
	if len(r.Models) != 35 {
		t.Fatalf("%d models", len(r.Models))
	}
	for _, want := range r.Models {
		t.Run(want.Dataset+"/"+string(want.Ties)+"/"+want.Formula, func(t *testing.T) {
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
			m, err := FitCox(time, event, x, want.Ties)
			if err != nil {
				t.Fatal(err)
			}
			if m.N != want.N || m.Events != want.Nevent || m.Iterations != want.Iter || !m.Converged {
				t.Errorf("%d samples, %d events, %d iterations, converged %v; R has %d, %d, %d", m.N,
					m.Events, m.Iterations, m.Converged, want.N, want.Nevent, want.Iter)
			}
			near(t, "log likelihood at 0", m.LogLikNull, want.LoglikNull)
			near(t, "log likelihood", m.LogLik, want.Loglik)
			near(t, "concordance", m.Concordance, want.Concordance)
			for c := range want.Coef {
				near(t, "coefficient", m.Coef[c], want.Coef[c])
				near(t, "standard error", m.SE[c], want.Se[c])
				near(t, "z", m.Z[c], want.Z[c])
				near(t, "p", m.P[c], want.P[c])
				for e := range want.Coef {
					near(t, "covariance", m.Var[c][e], want.Var[c*len(want.Coef)+e])
				}
			}
			for _, c := range []struct {
				name string
				got  Test
				want numbers
			}{{"likelihood ratio", m.LR, want.LR}, {"score", m.Score, want.Score}} {
				near(t, c.name, c.got.Statistic, c.want[0])
				near(t, c.name+" p", c.got.P, c.want[2])
			}
			if r := math.Round(m.Wald.Statistic*100) / 100; r != want.Wald[0] { // R rounds this one
				t.Errorf("Wald: %v, R has %v", r, want.Wald[0])
			}
			near(t, "Wald p", m.Wald.P, want.Wald[2])
		})
	}
}

func TestEdgesAgreeWithR(t *testing.T) {
	var r struct {
		Edge struct {
			Monotone struct {
				Data []struct{ Time, Status, X float64 }
				Coef float64 `json:"r_coef"`
			}
			Scaling struct {
				Z float64 `json:"z_age"`
			}
		}
		Logrank struct {
			Lung struct{ Chisq, P float64 } `json:"lung_sex"`
			Cell struct{ Chisq, P float64 } `json:"veteran_celltype"`
		}
		KM struct {
			Time, Surv, StdErrLog []float64
			Log                   []float64 `json:"std_err_log"`
			Risk                  []int     `json:"n_risk"`
			Event                 []int     `json:"n_event"`
		} `json:"kaplan_meier_lung"`
		Adjust struct {
			P, Bonferroni, Holm []float64
		} `json:"p_adjust"`
	}
	load(t, "other.json", &r)

	var time []float64
	var event []bool
	var x [][]float64
	for _, d := range r.Edge.Monotone.Data {
		time, event, x = append(time, d.Time), append(event, d.Status == 1), append(x, []float64{d.X})
	}
	if m, err := FitCox(time, event, x, Efron); err != nil || m.Converged {
		t.Errorf("a likelihood without a maximum: %+v, %v", m, err)
	}

	lung := table(t, "lung")
	event, x = nil, nil
	group := []int{}
	for i, e := range lung["event"] {
		event = append(event, e == 1)
		x = append(x, []float64{lung["age"][i] * 1e6})
		group = append(group, int(lung["sex"][i])-1)
	}
	m, err := FitCox(lung["time"], event, x, Efron)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "z of a scaled covariate", m.Z[0], r.Edge.Scaling.Z)
	for i := range x {
		x[i][0] = 3
	}
	if _, err := FitCox(lung["time"], event, x, Efron); err == nil {
		t.Error("a constant covariate is fitted")
	}

	test, err := LogRank(lung["time"], event, group)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "log-rank of two groups", test.Statistic, r.Logrank.Lung.Chisq)
	near(t, "its p", test.P, r.Logrank.Lung.P)

	veteran := table(t, "veteran")
	event, group = nil, nil
	for i, e := range veteran["status"] {
		event = append(event, e == 1)
		group = append(group, int(veteran["ct_smallcell"][i]+2*veteran["ct_adeno"][i]+
			3*veteran["ct_large"][i]))
	}
	if test, err = LogRank(veteran["time"], event, group); err != nil {
		t.Fatal(err)
	}
	near(t, "log-rank of four groups", test.Statistic, r.Logrank.Cell.Chisq)
	near(t, "its p", test.P, r.Logrank.Cell.P)

	event = nil
	for _, e := range lung["event"] {
		event = append(event, e == 1)
	}
	steps := KaplanMeier(lung["time"], event)
	for i, at := range r.KM.Time {
		s := steps[i]
		if s.Time != at || s.AtRisk != r.KM.Risk[i] || s.Deaths != r.KM.Event[i] {
			t.Errorf("step %d: %+v", i, s)
		}
		near(t, "Kaplan-Meier", s.Survival, r.KM.Surv[i])
		near(t, "its standard error", s.StdErrLog, r.KM.Log[i])
	}

	for i := range r.Adjust.P {
		near(t, "Bonferroni", Bonferroni(r.Adjust.P)[i], r.Adjust.Bonferroni[i])
		near(t, "Holm", Holm(r.Adjust.P)[i], r.Adjust.Holm[i])
	}
}

// Seven samples with ties are few enough to compute by hand: at β = 0 the partial likelihoods
// are products of counts.
func TestCoxByHand(t *testing.T) {
	time := []float64{4, 3, 1, 1, 2, 2, 3}
	event := []bool{true, true, true, false, true, true, false}
	x := [][]float64{{0}, {2}, {1}, {1}, {1}, {0}, {0}}
	// Deaths: at 1 one of 7; at 2 two of 5; at 3 one of 3; at 4 one of 1.
	for ties, want := range map[Ties]float64{
		Efron:   -math.Log(7 * 5 * 4 * 3),
		Breslow: -math.Log(7 * 5 * 5 * 3),
		Exact:   -math.Log(7 * 10 * 3),
	} {
		m, err := FitCox(time, event, x, ties)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(m.LogLikNull-want) > 1e-14 {
			t.Errorf("%s: log likelihood at 0 is %v, by hand %v", ties, m.LogLikNull, want)
		}
	}
}
