library(testthat)
library(quantmf)
test_check("quantmf")
