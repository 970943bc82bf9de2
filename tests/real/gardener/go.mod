module replant.test/gardener

go 1.26.0

require github.com/gardener/gardener v1.36.0
