// Package mapping reads the file that says how other people's events are named: a
// YAML or JSON document of two tables.
//
//	eventTypes:            # their name: the contract's, or ignored
//	  MoneyDeposited: FundsCredited
//	fields:                # the contract's name: where it stands
//	  version: meta.seq    # a member of the JSON document, names joined by points
//	  amount: [the.amount] # the same as a list, for names that have points
//	  accountId: {key: true}
//	  correlationId: {header: x-trace-id}
//
// What the file does not name stays as the contract has it. Every error names the
// line it is about.
package mapping
