# Prints the seconds and the loss of RcppML for nmf.py: Rscript nmf.R FILE D N K ITERATIONS. RcppML draws its start
# itself from a seed, and accepts no other.
suppressMessages(library(RcppML))
setRcppMLthreads(1)
args <- commandArgs(TRUE)
h <- as.integer(args[2:5])
f <- file(args[1], "rb")
x <- matrix(readBin(f, "double", h[1] * h[2]), h[1], h[2], byrow = TRUE)
close(f)
begin <- proc.time()
m <- RcppML::nmf(x, h[3], tol = 0, maxit = h[4], verbose = FALSE, seed = 1)
worked <- proc.time() - begin
w <- m$w %*% (m$d * m$h)
cat(worked[[1]] + worked[[2]], mean((x - w)^2) / 2, "\n")
