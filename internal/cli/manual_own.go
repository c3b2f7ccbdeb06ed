package cli

// ownPages are the pages of the commands about custom projections.
var ownPages = map[string]manualPage{
	"projection check": {
		about: "Reads the file, and has PostgreSQL plan each of its statements as the role that run gives them, with new_events as run " +
			"provides it. Nothing is run and nothing is written. A missing grant is printed as the statement to type. The tables that the file has rebuilt must exist and have a primary key. Standard error says " +
			"when the rows of the projection were made with an earlier version of the file.",
		status: "0 the file can be run; 1 a grant or a primary key is missing, or the server cannot be reached; 2 the file is wrong, and the line is named.",
		examples: []example{
			{"Before it is deployed", "projector projection check loyalty.sql"},
			{"Which event types it reads", "projector projection check loyalty.sql --output=json | jq -r '.types[]'"},
		},
	},
	"mapping check": {
		about: "Reads a mapping file as run does with --mapping, and lists where each field is read from and how it has to be written there. " +
			"Needs no server. All mistakes are named, each with its line and column. Editors find them too, by docs/mapping.schema.json.",
		status: "0 the file is right; 2 it is wrong.",
		examples: []example{
			{"Before it is deployed", "projector mapping check bank.yaml"},
			{"For another format, and where the amount is", "projector mapping check bank.yaml --format=cloudevents --output=json | jq '.fields[] | select(.field==\"amount\")'"},
		},
	},
}
