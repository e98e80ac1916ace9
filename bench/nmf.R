# Prints the seconds and the loss of RcppML for nmf.py: Rscript nmf.R PROBLEM ITERATIONS. RcppML
# draws its start itself from a seed, and accepts no other.
suppressMessages(library(RcppML))
setRcppMLthreads(1)
args <- commandArgs(TRUE)
f <- file(args[1], "rb")
h <- readBin(f, "double", 4)
x <- matrix(readBin(f, "double", h[1] * h[2]), h[1], h[2], byrow = TRUE)
close(f)
begin <- proc.time()
m <- RcppML::nmf(x, h[3], tol = 0, maxit = as.integer(args[2]), verbose = FALSE, seed = 1)
worked <- proc.time() - begin
w <- m$w %*% (m$d * m$h)
cat(worked[[1]] + worked[[2]], mean((x - w)^2) / 2, "\n")
