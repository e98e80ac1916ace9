-- For Lmod: as ROOT/modulefiles/quantmf/VERSION.lua, with the program as ROOT/software/quantmf/VERSION/bin/quantmf.
local version = myModuleVersion()
local root = pathJoin(myFileName():match("^(.*)/modulefiles/"), "software", myModuleName(), version)

help([[
quantmf factorises a matrix of features and samples whose features were measured on different scales.
"quantmf help" lists its commands. A fit takes one thread per processor of the node; in a job give it
-workers $SLURM_CPUS_PER_TASK. It writes the files that it is told to, and uses no network.
]])
whatis("Name: quantmf")
whatis("Version: " .. version)
whatis("Description: matrix factorisation for features on different scales")
whatis("URL: https://github.com/quantmf/quantmf")

conflict("quantmf")
prepend_path("PATH", pathJoin(root, "bin"))
