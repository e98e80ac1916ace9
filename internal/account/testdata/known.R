# Makes known.json, what R says of tests that known_test.go makes, too:
#   Rscript testdata/known.R > testdata/known.json && python testdata/known.py
# R 4.2.2 with survival 3.5-3 and jsonlite; known.py, scipy 1.17.1, checks the same figures.
library(survival)
library(jsonlite)
set.seed(7)
cases <- list()
for (n in c(6, 25, 40, 120)) for (bond in c(0, 1, 8)) for (groups in c(2, 3, 6)) {
  if (groups * 2 > n) next
  of <- sample(rep_len(seq_len(groups), n))
  x <- round(rexp(n) + bond * of / groups, 2)
  if (bond == 1) x <- round(x)                     # ties
  y <- round(x * bond + 3 * rnorm(n), 1)
  if (length(unique(x)) < 2) next
  time <- ceiling(20 * rexp(n) * exp(-bond * x / 4)) + 1
  event <- runif(n) < .6
  event[1] <- TRUE
  k <- kruskal.test(x, of)
  s <- suppressWarnings(cor.test(x, y, method = "spearman", exact = FALSE))
  w <- suppressWarnings(wilcox.test(x[of == 1], x[of != 1], exact = FALSE))
  c1 <- suppressWarnings(coxph(Surv(time, event) ~ x))
  c2 <- suppressWarnings(coxph(Surv(time, event) ~ x + y))
  one <- summary(c1)
  cases[[length(cases) + 1]] <- list(x = x, y = y, of = of - 1, groups = groups, time = time, event = event,
    kruskal = c(k$statistic / (n - 1), k$p.value), spearman = c(s$estimate, s$p.value),
    wilcoxon = c(w$statistic / (sum(of == 1) * sum(of != 1)), w$p.value),
    cox = if (n == 6) numeric() else
      c(one$coefficients[, c("coef", "se(coef)", "Pr(>|z|)")], one$logtest["pvalue"]),
    hazard = if (n == 6) numeric() else c(exp(sd(x) * coef(c1)), exp(sd(x) * confint(c1))),
    both = if (n == 6) numeric() else
      c(coef(c2), summary(c2)$coefficients[, "Pr(>|z|)"], summary(c2)$logtest["pvalue"]))
}
p <- c(.04, .001, .9, .001, .2, 1, .03, .03, 1e-12)
writeLines(toJSON(list(cases = cases, p = p, q = p.adjust(p, "BH")), digits = 15, auto_unbox = TRUE))
