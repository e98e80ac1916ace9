# Runs RcppML 1.0.0 for nmf.py. Rscript nmf.R X U D N K ITERATIONS prints its seconds and its loss, begun with U;
# Rscript nmf.R DATA K FOLDER fits data that it ships by its own defaults, writes X, U and V, and prints d, n and
# the seconds.
suppressMessages(library(RcppML))
args <- commandArgs(TRUE)
timed <- function(...) {
  begin <- proc.time()
  m <- RcppML::nmf(..., verbose = FALSE, threads = 1)
  worked <- proc.time() - begin
  list(m = m, seconds = worked[[1]] + worked[[2]])
}
if (length(args) == 3) {
  data(list = args[1], package = "RcppML")
  x <- get(args[1])
  got <- timed(x, as.integer(args[2]), seed = 1)
  for (one in list(list("X", as.matrix(x)), list("U", got$m@w), list("V", got$m@d * got$m@h))) {
    f <- file(file.path(args[3], one[[1]]), "wb")
    writeBin(as.vector(t(one[[2]])), f)
    close(f)
  }
  cat(dim(x), got$seconds, "\n")
} else {
  h <- as.integer(args[3:6])
  read <- function(file, d, n) matrix(readBin(file, "double", d * n), d, n, byrow = TRUE)
  x <- read(args[1], h[1], h[2])
  got <- timed(x, h[3], tol = 0, maxit = h[4], seed = read(args[2], h[1], h[3]))
  cat(got$seconds, mean((x - got$m@w %*% (got$m@d * got$m@h))^2) / 2, "\n")
}
